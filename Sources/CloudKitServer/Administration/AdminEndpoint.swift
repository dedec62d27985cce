/// The calls of the admin API: `POST /admin/1/{noun}/{verb}`.
///
/// This is the one list of them. Each noun's function switches over its verbs without a default,
/// and the tests of rights iterate over ``all``: a new call cannot compile unhandled, and is tested
/// with every kind of caller.
package enum AdminEndpoint: Hashable, Sendable {
  package enum Assets: String, CaseIterable, Sendable { case check }

  package enum Audit: String, CaseIterable, Sendable { case list }

  package enum Backup: String, CaseIterable, Sendable { case confirm, create, stream }

  package enum Containers: String, CaseIterable, Sendable {
    case create, delete, list
  }

  package enum Database: String, CaseIterable, Sendable { case request }

  package enum Invitations: String, CaseIterable, Sendable { case create }

  package enum Keys: String, CaseIterable, Sendable { case add, list, remove }

  package enum Requests: String, CaseIterable, Sendable { case list }

  package enum Schema: String, CaseIterable, Sendable {
    case diff, export, promote, validate
    case importSchema = "import"
    case resetDevelopment = "reset-development"
    case setIndex = "set-index"
    case setRoles = "set-roles"
  }

  package enum Server: String, CaseIterable, Sendable {
    case housekeep, status
    case newIncarnation = "new-incarnation"
    case renewToken = "renew-token"
    case rotateKey = "rotate-key"
  }

  /// The one noun whose call is authenticated by a password instead of a bearer token.
  package enum Session: String, CaseIterable, Sendable { case start }

  package enum Tokens: String, CaseIterable, Sendable { case create, list, own, remove }

  package enum Users: String, CaseIterable, Sendable {
    case create, delete, devices, list, restore, sessions, update
    case endSession = "end-session"
    case removeFactor = "remove-factor"
    case resetPassword = "reset-password"
    case revokeDevice = "revoke-device"
    case signIn = "sign-in"
    case signOut = "sign-out"
  }

  package enum Usage: String, CaseIterable, Sendable { case list }

  case assets(Assets)
  case audit(Audit)
  case backup(Backup)
  case containers(Containers)
  case database(Database)
  case invitations(Invitations)
  case keys(Keys)
  case requests(Requests)
  case schema(Schema)
  case server(Server)
  case session(Session)
  case tokens(Tokens)
  case usage(Usage)
  case users(Users)

  /// Parses the last two parts of a path.
  package init?(noun: String, verb: String) {
    func read<Verb: RawRepresentable<String>>(_ make: (Verb) -> AdminEndpoint) -> AdminEndpoint? {
      Verb(rawValue: verb).map(make)
    }
    let found: AdminEndpoint? =
      switch noun {
      case "assets": read(AdminEndpoint.assets)
      case "audit": read(AdminEndpoint.audit)
      case "backup": read(AdminEndpoint.backup)
      case "containers": read(AdminEndpoint.containers)
      case "database": read(AdminEndpoint.database)
      case "invitations": read(AdminEndpoint.invitations)
      case "keys": read(AdminEndpoint.keys)
      case "requests": read(AdminEndpoint.requests)
      case "schema": read(AdminEndpoint.schema)
      case "server": read(AdminEndpoint.server)
      case "session": read(AdminEndpoint.session)
      case "tokens": read(AdminEndpoint.tokens)
      case "usage": read(AdminEndpoint.usage)
      case "users": read(AdminEndpoint.users)
      default: nil
      }
    guard let found else { return nil }
    self = found
  }

  package var noun: String {
    switch self {
    case .assets: "assets"
    case .audit: "audit"
    case .backup: "backup"
    case .containers: "containers"
    case .database: "database"
    case .invitations: "invitations"
    case .keys: "keys"
    case .requests: "requests"
    case .schema: "schema"
    case .server: "server"
    case .session: "session"
    case .tokens: "tokens"
    case .usage: "usage"
    case .users: "users"
    }
  }

  package var verb: String {
    switch self {
    case .assets(let verb): verb.rawValue
    case .audit(let verb): verb.rawValue
    case .backup(let verb): verb.rawValue
    case .containers(let verb): verb.rawValue
    case .database(let verb): verb.rawValue
    case .invitations(let verb): verb.rawValue
    case .keys(let verb): verb.rawValue
    case .requests(let verb): verb.rawValue
    case .schema(let verb): verb.rawValue
    case .server(let verb): verb.rawValue
    case .session(let verb): verb.rawValue
    case .tokens(let verb): verb.rawValue
    case .usage(let verb): verb.rawValue
    case .users(let verb): verb.rawValue
    }
  }

  package var path: String { "\(Route.Section.admin.path)/1/\(noun)/\(verb)" }

  package static let all: [AdminEndpoint] =
    Assets.allCases.map(Self.assets) + Audit.allCases.map(Self.audit)
    + Backup.allCases.map(Self.backup)
    + Containers.allCases.map(Self.containers) + Database.allCases.map(Self.database)
    + Invitations.allCases.map(Self.invitations)
    + Keys.allCases.map(Self.keys) + Requests.allCases.map(Self.requests)
    + Schema.allCases.map(Self.schema)
    + Server.allCases.map(Self.server) + Session.allCases.map(Self.session)
    + Tokens.allCases.map(Self.tokens) + Usage.allCases.map(Self.usage)
    + Users.allCases.map(Self.users)
}
