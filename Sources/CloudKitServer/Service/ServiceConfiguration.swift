import Effects
import Foundation
import Logging

/// What a server is made of.
package struct ServiceConfiguration: Sendable {
  /// Where everything is kept; nil keeps it in memory.
  package var dataFolder: URL?
  /// A PostgreSQL as `postgresql://…` instead of a file in the data folder; several servers can
  /// share it.
  package var database: String?
  /// Where clients reach the server, such as `http://127.0.0.1:8080`; it can be set later.
  package var baseURL: String
  package var limits: ServiceLimits
  package var effects: Effects
  /// Takes queries in development that the documented index rules refuse: without a filter, and
  /// without indexes.
  package var allowsUnindexedQueriesInDevelopment: Bool
  /// Who may make an account.
  package var registration: RegistrationPolicy
  /// Whom others find by an address or a number.
  package var discovery = DiscoveryPolicy.everyone
  /// What takes mails; nil: the server sends none.
  package var mailSender: (any MailSender)?
  /// Another service that people can sign in at; nil: only here.
  package var identityProvider: (any IdentityProvider)?
  /// Opens the admin API; nil leaves it to the accounts of administrators.
  package var administratorToken: String?
  /// Replaces that token where it is kept, and gives the new one; nil where it is kept nowhere.
  package var renewAdministratorToken: (@Sendable () throws -> String)?
  /// Host names that the admin API and the pages for people answer under, besides the machine's own
  /// and the base URL's.
  package var allowedHosts: [String]
  package var logger: Logger
  /// Where assets are kept; nil: in the data folder.
  package var assetStore: (any AssetStore)?
  /// Where assets are fetched from, such as `https://files.example.org`; nil: the base URL.
  ///
  /// An origin of their own keeps whatever a file does in a browser away from the server's pages.
  package var assetURL: String?
  /// The keys of encrypted fields; nil: a file in the data folder, beside the database.
  package var keyFile: URL?
  /// Where the keys of encrypted fields are; nil in memory.
  package var fieldKeyFile: URL? {
    keyFile ?? dataFolder?.appendingPathComponent(CloudKitService.keyFileName)
  }
  /// What stands between the service and the storage that it opens: a test has commits fail there.
  var storage: (@Sendable (any Storage) -> any Storage)?
  /// Told of every commit to records and zones.
  package var onCommit: (@Sendable (CommitEvent) -> Void)?

  package init(
    dataFolder: URL? = nil,
    database: String? = nil,
    baseURL: String = "http://127.0.0.1",
    limits: ServiceLimits = ServiceLimits(),
    effects: Effects = .live,
    allowsUnindexedQueriesInDevelopment: Bool = false,
    registration: RegistrationPolicy = .invitation,
    mailSender: (any MailSender)? = nil,
    identityProvider: (any IdentityProvider)? = nil,
    administratorToken: String? = nil,
    renewAdministratorToken: (@Sendable () throws -> String)? = nil,
    allowedHosts: [String] = [],
    logger: Logger = Logger(label: "watershed", factory: { _ in SwiftLogNoOpLogHandler() }),
    assetStore: (any AssetStore)? = nil,
    assetURL: String? = nil,
    keyFile: URL? = nil,
    onCommit: (@Sendable (CommitEvent) -> Void)? = nil
  ) {
    self.dataFolder = dataFolder
    self.database = database
    self.baseURL = baseURL
    self.limits = limits
    self.effects = effects
    self.allowsUnindexedQueriesInDevelopment = allowsUnindexedQueriesInDevelopment
    self.registration = registration
    self.mailSender = mailSender
    self.identityProvider = identityProvider
    self.administratorToken = administratorToken
    self.renewAdministratorToken = renewAdministratorToken
    self.allowedHosts = allowedHosts.map { $0.lowercased() }
    self.logger = logger
    self.assetStore = assetStore
    self.assetURL = assetURL
    self.keyFile = keyFile
    self.onCommit = onCommit
  }
}
