import Effects
import Foundation
import Logging

/// The configuration of a server.
package struct ServiceConfiguration: Sendable {
  /// The folder of all data; nil keeps it in memory.
  package var dataFolder: URL?
  /// The URL of a PostgreSQL database, `postgresql://…`, instead of a file in the data folder;
  /// several servers can share it.
  package var database: String?
  /// The URL at which clients reach the server, such as `http://127.0.0.1:8080`; it can be set
  /// later.
  package var baseURL: String
  package var limits: ServiceLimits
  package var effects: Effects
  /// Accepts queries in development that the documented index rules refuse: without a filter, and
  /// without indexes.
  package var allowsUnindexedQueriesInDevelopment: Bool
  /// Who may create an account.
  package var registration: RegistrationPolicy
  /// The users that others can look up by an e-mail address or a telephone number.
  package var discovery = DiscoveryPolicy.everyone
  /// The transport of mails; nil: the server sends none.
  package var mailSender: (any MailSender)?
  /// Another service at which users can sign in; nil: only here.
  package var identityProvider: (any IdentityProvider)?
  /// The bearer token of the admin API; nil allows only accounts of administrators.
  package var administratorToken: String?
  /// Replaces that token in its file, and returns the new one; nil if it is in no file.
  package var renewAdministratorToken: (@Sendable () throws -> String)?
  /// Host names under which the admin API and the pages are served, besides the machine's own and
  /// the base URL's.
  package var allowedHosts: [String]
  package var logger: Logger
  /// The store of assets; nil: in the data folder.
  package var assetStore: (any AssetStore)?
  /// The URL from which assets are downloaded, such as `https://files.example.org`; nil: the base
  /// URL.
  ///
  /// With an origin of its own, active content in a file has no access to the server's pages.
  package var assetURL: String?
  /// The file of the keys of encrypted fields; nil: a file in the data folder, beside the database.
  package var keyFile: URL?
  /// The file of the keys of encrypted fields; nil in memory.
  package var fieldKeyFile: URL? {
    keyFile ?? dataFolder?.appendingPathComponent(CloudKitService.keyFileName)
  }
  /// The container that each start creates, which administrators cannot delete; nil: none.
  package var ownContainer: String?
  /// Called after every commit to records and zones.
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
