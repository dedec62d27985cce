import CloudKitWebServices
import Effects
import Foundation
import Logging
import Synchronization

/// The service as a library: a request value in, a response value out.
///
/// It has no sockets; an adapter turns bytes into `WebServiceRequest` and back. The same code
/// serves production, tests and the in-process transport.
package final class CloudKitService: Sendable {
  package let limits: ServiceLimits
  let bodyBounds: BodyBounds
  let configuration: ServiceConfiguration
  let effects: Effects
  package let storage: any Storage
  /// All writes of this process.
  let writer: StorageWriter
  let databases: DatabaseLookup
  let rates: RequestRates
  package let auditLog: AuditLog
  let quotas: DatabaseQuotas
  package let assets: AssetService
  let signer: Signer
  let vault: FieldVault
  package let delivery: NotificationDelivery
  package let devices: DeviceService
  let subscriptions: SubscriptionService
  package let users: UserService
  package let zones: ZoneService
  let removals: ZoneRemovals
  package let indexes: QueryIndexes
  let records: RecordService
  let queries: QueryService
  let feeds: ChangeFeedService
  let sharing: SharingService
  package let schemas: SchemaService
  let erasing: SchemaErasures
  let failures: RequestFailures
  let renderer: RecordRenderer
  let attempts: SignInLimiter
  let secondFactors: SecondFactorService
  let passwords: PasswordService
  package let sessions: SessionService
  let purges: AccountPurges
  package let accounts: AccountService
  let ownAccounts: OwnAccountService
  let exports: AccountExports
  package let apiTokens: APITokenService
  package let serverKeys: ServerKeyService
  let readiness = Readiness()
  let backupRuns = BackupRuns()
  let reads: BoundedReads
  let mails: AccountMails
  /// The bearer token of the admin API; it can be renewed while the server runs.
  let administratorToken: Mutex<String?>
  private let address: ServerAddress
  private let shutdownFlag = ShutdownFlag()

  var logger: Logger { configuration.logger }

  var isClosed: Bool { shutdownFlag.isSet }

  /// The URL at which clients reach the server, without a trailing slash.
  package var baseURL: String {
    get { address.url }
    set { address.url = newValue }
  }

  /// The host of that URL, for users.
  var host: String { address.host }

  /// Opens the data, and throws if the asset store belongs to other data.
  package static func open(
    _ configuration: ServiceConfiguration
  ) async throws -> CloudKitService {
    let service = try CloudKitService(configuration, storage: try configuration.openStorage())
    do {
      try await service.assets.bindStore()
      // What a process left that was killed while it sent a backup.
      if configuration.dataFolder != nil {
        try? FileManager.default.removeItem(at: service.backupCopyFolder)
      }
      return service
    } catch {
      await service.shutdown()
      throw error
    }
  }

  /// Opens the storage of the configuration; `open` checks whether the asset store belongs to the
  /// data.
  package convenience init(_ configuration: ServiceConfiguration) throws {
    try self.init(configuration, storage: try configuration.openStorage())
  }

  /// Serves the data of a storage.
  package init(_ configuration: ServiceConfiguration, storage: any Storage) throws {
    self.configuration = configuration
    self.storage = storage
    limits = configuration.limits
    bodyBounds = BodyBounds(limits)
    effects = configuration.effects
    writer = StorageWriter(storage, effects)
    databases = DatabaseLookup(storage, limits)
    rates = RequestRates(limits, effects)
    auditLog = AuditLog(
      storage: storage,
      writer: writer,
      limits: limits,
      effects: effects,
      logger: configuration.logger
    )
    reads = BoundedReads(limits, effects)
    address = ServerAddress(configuration.baseURL)
    let assetStore: any AssetStore
    if let store = configuration.assetStore {
      assetStore = store
    } else if let folder = configuration.dataFolder {
      assetStore = try FolderAssetStore(folder: folder.appendingPathComponent(Self.assetFolderName))
    } else {
      assetStore = MemoryAssetStore { [effects] in effects.now }
    }
    vault = try FieldVault(
      file: configuration.fieldKeyFile,
      storage: storage,
      randomness: configuration.effects.randomness,
      now: configuration.effects.now.wireMilliseconds
    )
    signer = Signer(
      keys: vault.signingKeys,
      former: storage.secret,
      clock: configuration.effects.clock,
      reread: { [vault] in try? vault.reread() }
    )
    quotas = DatabaseQuotas(storage, assetStore, limits, effects)
    assets = AssetService(
      store: assetStore,
      storage: storage,
      writer: writer,
      databases: databases,
      quotas: quotas,
      throttle: rates.throttle,
      reads: reads,
      signer: signer,
      address: address,
      downloadURL: configuration.assetURL,
      limits: limits,
      effects: effects
    )
    let hub = NotificationHub(
      effects: effects,
      timeout: limits.longPollTimeout,
      listenerLimit: limits.listenersPerDevice
    )
    delivery = try NotificationDelivery(
      storage: storage,
      hub: hub,
      effects: effects,
      onCommit: configuration.onCommit
    )
    devices = DeviceService(
      storage: storage,
      writer: writer,
      hub: hub,
      signer: signer,
      address: address,
      shutdownFlag: shutdownFlag,
      limits: limits,
      effects: effects,
      logger: configuration.logger
    )
    subscriptions = SubscriptionService(
      storage: storage,
      writer: writer,
      databases: databases,
      limits: limits,
      effects: effects
    )
    users = UserService(
      storage: storage,
      writer: writer,
      vault: vault,
      rates: rates,
      discovery: configuration.discovery,
      limits: limits,
      effects: effects
    )
    failures = RequestFailures(logger: configuration.logger)
    let tokens = ChangeTokens(storage: storage, signer: signer)
    renderer = RecordRenderer(
      vault: vault,
      assets: assets,
      address: address,
      logger: configuration.logger
    )
    indexes = QueryIndexes(storage: storage, reads: reads)
    let recordWriter = RecordWriter(
      storage: storage,
      writer: writer,
      databases: databases,
      users: users,
      assets: assets,
      vault: vault,
      renderer: renderer,
      tokens: tokens,
      delivery: delivery,
      rates: rates,
      limits: limits,
      effects: effects
    )
    erasing = SchemaErasures(writer: writer, records: recordWriter, indexes: indexes)
    schemas = SchemaService(storage: storage, writer: writer, erasing: erasing, effects: effects)
    records = RecordService(
      writer: recordWriter,
      erasing: erasing,
      reads: reads,
      quotas: quotas,
      failures: failures
    )
    queries = QueryService(
      storage: storage,
      databases: databases,
      reads: reads,
      indexes: indexes,
      renderer: renderer,
      tokens: tokens,
      signer: signer,
      limits: limits,
      allowsUnindexedInDevelopment: configuration.allowsUnindexedQueriesInDevelopment,
      logger: configuration.logger
    )
    feeds = ChangeFeedService(
      storage: storage,
      databases: databases,
      reads: reads,
      tokens: tokens,
      renderer: renderer,
      limits: limits
    )
    zones = ZoneService(
      storage: storage,
      writer: writer,
      databases: databases,
      reads: reads,
      quotas: quotas,
      delivery: delivery,
      tokens: tokens,
      limits: limits
    )
    removals = ZoneRemovals(storage: storage, writer: writer, limits: limits, effects: effects)
    sharing = SharingService(
      storage: storage,
      writer: writer,
      users: users,
      reads: reads,
      rates: rates,
      delivery: delivery,
      renderer: renderer,
      signer: signer,
      address: address,
      limits: limits,
      effects: effects
    )
    mails = AccountMails(
      sender: configuration.mailSender,
      storage: storage,
      throttle: rates.throttle,
      address: address,
      limits: limits,
      effects: effects,
      logger: configuration.logger
    )
    attempts = SignInLimiter(
      storage: storage,
      writer: writer,
      auditLog: auditLog,
      limits: limits,
      effects: effects,
      sendsMail: mails.isOn
    )
    secondFactors = SecondFactorService(
      storage: storage,
      writer: writer,
      vault: vault,
      attempts: attempts,
      auditLog: auditLog,
      mails: mails,
      address: address,
      limits: limits,
      effects: effects
    )
    passwords = PasswordService(
      storage: storage,
      writer: writer,
      vault: vault,
      hashing: HashingQueue(configuration.effects.lane("server passwords")),
      attempts: attempts,
      secondFactors: secondFactors,
      auditLog: auditLog,
      mails: mails,
      limits: limits,
      effects: effects
    )
    sessions = SessionService(
      storage: storage,
      writer: writer,
      users: users,
      devices: devices,
      auditLog: auditLog,
      limits: limits,
      effects: effects
    )
    purges = AccountPurges(
      storage: storage,
      writer: writer,
      zones: zones,
      sessions: sessions,
      delivery: delivery,
      limits: limits,
      effects: effects
    )
    accounts = AccountService(
      storage: storage,
      writer: writer,
      sessions: sessions,
      passwords: passwords,
      attempts: attempts,
      purges: purges,
      mails: mails,
      auditLog: auditLog,
      address: address,
      registration: configuration.registration,
      issuerName: configuration.identityProvider?.name,
      limits: limits,
      effects: effects,
      logger: configuration.logger
    )
    ownAccounts = OwnAccountService(
      storage: storage,
      writer: writer,
      accounts: accounts,
      sessions: sessions,
      devices: devices,
      passwords: passwords,
      secondFactors: secondFactors,
      mails: mails,
      auditLog: auditLog,
      effects: effects
    )
    exports = AccountExports(
      storage: storage,
      writer: writer,
      ownAccounts: ownAccounts,
      reads: reads,
      renderer: renderer,
      assets: assets,
      signer: signer,
      auditLog: auditLog,
      address: address,
      limits: limits,
      effects: effects,
      logger: configuration.logger
    )
    apiTokens = APITokenService(
      storage: storage,
      writer: writer,
      vault: vault,
      sessions: sessions,
      effects: effects
    )
    serverKeys = ServerKeyService(
      storage: storage,
      writer: writer,
      users: users,
      failures: failures,
      limits: limits,
      effects: effects
    )
    administratorToken = Mutex(configuration.administratorToken)
    storage.listen { [weak self] event in self?.handle(event) }
  }

  /// Ends long polls with `null` and closes the storage; later requests get TRY_AGAIN_LATER.
  package func shutdown() async {
    shutdownFlag.set()
    devices.endListening()
    // Mails look up recipients in the storage.
    await mails.queue?.close()
    _ = try? await writer.directoryLane.run { [storage] in storage.close() }
  }

  /// Handles a commit notification of the storage; commits of this process were delivered already.
  private func handle(_ event: StorageEvent) {
    switch event {
    case .directory:
      // A commit of this process is followed by a call for its account, outside the writer's lane.
      guard !writer.isCurrent else { return }
      sessions.cache.forgetSessions()
      devices.checkListeners(in: delivery.lane)
    case .devices:
      guard !writer.isCurrent else { return }
      devices.checkListeners(in: delivery.lane)
    case .events:
      guard !writer.isCurrent else { return }
      // If the storage does not respond now, the next notification or the next maintenance delivers
      // the events.
      delivery.lane.async { [weak self] in try? self?.delivery.deliverEventsInLane() }
    }
  }

  /// Milliseconds since 1970.
  var now: Int64 { effects.now.wireMilliseconds }

  /// Loads, decides and commits; repeated if the loaded rows were changed in between.
  func write<Result: Sendable>(
    to partition: PartitionID? = nil,
    _ decide: @escaping @Sendable () throws -> (WriteBatch?, Result)
  ) async throws -> Result {
    try await writer.write(to: partition, decide)
  }
}

/// Whether the server is shutting down, for those who answer requests.
final class ShutdownFlag: Sendable {
  private let flag = Atomic<Bool>(false)

  var isSet: Bool { flag.load(ordering: .acquiring) }

  func set() { flag.store(true, ordering: .releasing) }
}
