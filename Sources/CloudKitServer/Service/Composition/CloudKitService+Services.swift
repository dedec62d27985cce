import Effects
import Foundation
import Logging

/// The services by name. Only this folder uses the groups that construct them.
extension CloudKitService {
  // MARK: What services share

  package var limits: ServiceLimits { foundation.limits }
  var configuration: ServiceConfiguration { foundation.configuration }
  var effects: Effects { foundation.effects }
  package var storage: any Storage { foundation.storage }
  var writer: StorageWriter { foundation.writer }
  var databases: DatabaseLookup { foundation.databases }
  var rates: RequestRates { foundation.rates }
  package var auditLog: AuditLog { foundation.auditLog }
  var reads: BoundedReads { foundation.reads }
  var quotas: DatabaseQuotas { foundation.quotas }
  var signer: Signer { foundation.signer }
  var vault: FieldVault { foundation.vault }
  var failures: RequestFailures { foundation.failures }
  var refusals: RefusalCounts { foundation.refusals }
  var requestLog: RequestLog { foundation.requestLog }
  var logger: Logger { foundation.logger }

  /// The URL at which clients reach the server, without a trailing slash.
  package var baseURL: String {
    get { foundation.address.url }
    set { foundation.address.url = newValue }
  }

  /// The host of that URL, for users.
  var host: String { foundation.address.host }

  // MARK: Notifications

  package var delivery: NotificationDelivery { notificationServices.delivery }
  package var devices: DeviceService { notificationServices.devices }
  var subscriptions: SubscriptionService { notificationServices.subscriptions }

  // MARK: Records

  package var assets: AssetService { recordServices.assets }
  package var users: UserService { recordServices.users }
  var renderer: RecordRenderer { recordServices.renderer }
  package var indexes: QueryIndexes { recordServices.indexes }
  var erasing: SchemaErasures { recordServices.erasing }
  package var schemas: SchemaService { recordServices.schemas }
  var records: RecordService { recordServices.records }

  // MARK: Databases

  var queries: QueryService { databaseServices.queries }
  var feeds: ChangeFeedService { databaseServices.feeds }
  package var zones: ZoneService { databaseServices.zones }
  var removals: ZoneRemovals { databaseServices.removals }
  var sharing: SharingService { databaseServices.sharing }

  // MARK: Credentials and sessions

  var mails: AccountMails { credentialServices.mails }
  var attempts: SignInLimiter { credentialServices.attempts }
  var secondFactors: SecondFactorService { credentialServices.secondFactors }
  var passwords: PasswordService { credentialServices.passwords }

  package var sessions: SessionService { sessionServices.sessions }
  package var apiTokens: APITokenService { sessionServices.apiTokens }
  package var serverKeys: ServerKeyService { sessionServices.serverKeys }

  // MARK: Accounts

  var purges: AccountPurges { accountServices.purges }
  var containerErasures: ContainerErasures { accountServices.containerErasures }
  package var accounts: AccountService { accountServices.accounts }
  var ownAccounts: OwnAccountService { accountServices.ownAccounts }
  var exports: AccountExports { accountServices.exports }
}
