import CloudKitServer
import CloudKitServerHTTP
import CloudKitWebServices
import Foundation

/// How a server is run, from a file, the environment and the command line; the later ones win.
///
/// Each key has one name in all three: `rateLimit` in the file, `WATERSHED_RATE_LIMIT` in the
/// environment, and for those that have one, `--rate-limit` as a flag.
///
/// The comments of the properties are the meanings in `Documentation/Operating/Configuration.md`
/// (`make handbook`).
struct ServerConfiguration: Codable, Hashable, Sendable {
  /// The folder for the database file, assets, keys and the operator's token; with PostgreSQL, a
  /// bucket and a key file of their own, only the token and the lock remain in it.
  var data = "./watershed-data"
  /// A PostgreSQL for everything but assets, as `postgresql://USER@HOST/NAME`; absent: an SQLite
  /// file in the data folder.
  var database: String?
  /// The address to listen on; `0.0.0.0` and `::` let other machines connect.
  var host = "127.0.0.1"
  /// The TCP port to listen on; 0 takes any free one.
  var port = 8080
  /// The container that the banner names, with an API token for it.
  var container = "iCloud.org.example.app"
  /// The environment that the banner's API token is for: `development` or `production`.
  ///
  /// Absent: development where only this machine reaches the server, otherwise production.
  var environment: ContainerEnvironment?
  /// Lets a server that other machines reach start with `environment` set to `development`, which
  /// has a demo account and tokens for every container.
  var allowPublicDevelopment = false
  /// The address that clients use, such as `https://cloud.example.org`.
  ///
  /// Links, upload and download URLs begin with it, and pages are served under its host name.
  var publicURL: String?
  /// Where assets are uploaded to and fetched from, such as `https://files.example.org`.
  ///
  /// It leads to the same server under another origin. Absent: `publicURL`.
  var assetURL: String?
  /// A certificate chain in PEM, for HTTPS without a proxy; read again when the file changes.
  var tlsCertificate: String?
  /// The private key of `tlsCertificate` in PEM; the two are given together.
  var tlsKey: String?
  /// Proxies whose `X-Forwarded-For` is believed: addresses, and networks such as `10.0.0.0/8`.
  var trustedProxies: [String] = []
  /// Host names that the admin API and the pages for users answer under, besides the machine's own
  /// and the public URL's.
  var allowedHosts: [String] = []
  /// Who may make an account on the sign-up page: `closed` (administrators make all accounts),
  /// `invitation` or `open`.
  var registration = RegistrationPolicy.invitation
  /// The users that others can look up by an e-mail address or a telephone number: `consent` (who has consented in the
  /// app) or `everyone` (all who have not refused).
  ///
  /// Absent: `consent` in production, `everyone` in development.
  var discovery: DiscoveryPolicy?
  /// In the development environment, answers queries that CloudKit's index rules refuse.
  var allowUnindexedQueries = false
  /// Requests that one user, or one network without a user, may send in a second on average.
  ///
  /// Null in the file: no limit. The default is ten times what a busy device sends.
  var rateLimit: Double? = 50
  /// Requests that one of them may send at once before the rate counts.
  var rateBurst: Double? = 500
  /// Bytes that one user may store in a container, assets included; null in the file: no limit.
  var userQuota: Int64? = 20 * 1_073_741_824
  /// Bytes that a container's public database may hold; null in the file: no limit.
  var publicQuota: Int64? = 50 * 1_073_741_824
  /// Bytes of it that one user may fill with records, and the same with uploads; the same again with
  /// uploads to each database that another user shares with them; null in the file: no limit.
  var publicUserQuota: Int64? = 5 * 1_073_741_824
  /// Bytes of one asset; absent: `assetSize` of the limits.
  var assetLimit: Int?
  /// The file with the keys of encrypted fields and of signatures.
  ///
  /// Absent: `field-keys.json` in the data folder. Servers that share a database need the same file.
  var keyFile: String?
  /// Shows `/metrics` to other machines and through proxies.
  var publicMetrics = false
  /// An address, such as `127.0.0.1:8081`, that has the admin API and `/metrics` for itself.
  ///
  /// The main address then answers 404 for both. Absent: the main address has them.
  var adminListen: String?
  /// What `serve` prints when it listens: `full`, with tokens and an invitation to paste, or `brief`,
  /// the address alone, where the output is kept as a log.
  var banner = BannerStyle.full
  /// The least level that is logged: `trace`, `debug`, `info`, `notice`, `warning`, `error` or
  /// `critical`.
  ///
  /// Each request is a line of the level `info`.
  var logLevel = "warning"
  /// The form of log lines on the standard error: `text` or `json`.
  var logFormat = "text"
  /// An S3 bucket for assets, instead of the data folder.
  var s3: S3Settings?
  /// An OpenID Connect issuer that users can sign in at, beside passwords.
  var openID: OpenIDSection?
  /// A mail server for links that confirm addresses, links to new passwords, and notices.
  ///
  /// Absent: the server sends no mail.
  var smtp: SMTPSection?

  struct S3Settings: Codable, Hashable, Sendable {
    /// The address of the store, such as `https://s3.eu-central-1.amazonaws.com`.
    var endpoint: String
    /// The name of the bucket, which exists already.
    var bucket: String
    /// The region that signatures of requests name.
    var region: String = "us-east-1"
    /// The ID of the access key.
    var accessKey: String
    /// The secret of the access key.
    var secretKey: String
    /// A prefix of the names of all objects, so that several servers can use one bucket.
    var prefix: String = ""
    /// Lets files go to a store on another machine without TLS.
    var allowPlainHTTP: Bool?

    var isPlainToAnotherMachine: Bool {
      guard let parts = URLComponents(string: endpoint), parts.scheme?.lowercased() == "http" else {
        return false
      }
      return !LoopbackHost.contains(parts.host)
    }

    init(from decoder: any Decoder) throws {
      let container = try decoder.container(keyedBy: CodingKeys.self)
      endpoint = try container.decode(String.self, forKey: .endpoint)
      bucket = try container.decode(String.self, forKey: .bucket)
      region = try container.decodeIfPresent(String.self, forKey: .region) ?? "us-east-1"
      accessKey = try container.decode(String.self, forKey: .accessKey)
      secretKey = try container.decode(String.self, forKey: .secretKey)
      prefix = try container.decodeIfPresent(String.self, forKey: .prefix) ?? ""
      allowPlainHTTP = try container.decodeIfPresent(Bool.self, forKey: .allowPlainHTTP)
    }
  }
}

extension ServerConfiguration {
  /// The kinds of values, with their names in messages.
  enum Kind: String {
    case text = "a text"
    case number = "a number"
    case wholeNumber = "a whole number"
    case flag = "true or false"
    case list = "a list of strings"
    case object = "an object"
  }

  /// A key of the file.
  struct Key: Hashable, Sendable {
    var name: String
    var kind: Kind
    /// The valid texts; nil for any.
    var words: [String]?
  }

  /// Every key of the file.
  static var keys: [Key] { table.map(\.description) }

  /// A key whose value is an object.
  struct Section: Sendable {
    var name: String
    var type: any ConfigurationSection.Type
    var prefix: String
    /// The keys that are required in it.
    var required: [String]
    var keys: [Key]

    init<Value: ConfigurationSection>(
      _ name: String,
      _ type: Value.Type,
      prefix: String,
      required: [String]
    ) {
      self.name = name
      self.type = type
      self.prefix = prefix
      self.required = required
      keys = Value.table.map(\.description)
    }
  }

  /// The environment variables of all keys.
  static var variables: [String] {
    keys.map { variable($0.name) }
      + sections.flatMap { section in
        section.keys.map { variable($0.name, in: section.prefix) }
      }
  }

  /// The environment variable of a key.
  static func variable(_ key: String, in prefix: String = "") -> String {
    let words = key.replacing(/([a-z0-9])([A-Z])/) { "\($0.output.1)_\($0.output.2)" }
    return "WATERSHED_" + (prefix.isEmpty ? "" : prefix + "_") + words.uppercased()
  }

  private var isOpen: Bool { !LoopbackHost.contains(host) }

  /// Whether other machines reach the listener for administration, which serves everything else too.
  private var isAdministrationOpen: Bool {
    adminListen.flatMap { AdministrationListener($0) }
      .map { !LoopbackHost.contains($0.host) } ?? false
  }

  /// Whether other machines reach the server, directly or through a proxy.
  var isExposed: Bool {
    isOpen || isAdministrationOpen || publicURL != nil || !trustedProxies.isEmpty
  }

  /// The environment that is served.
  var servedEnvironment: ContainerEnvironment {
    environment ?? (isExposed ? .production : .development)
  }

  /// Whether a proxy that the configuration does not name terminates TLS.
  private var isBehindUnnamedProxy: Bool {
    trustedProxies.isEmpty && tlsCertificate == nil
      && publicURL.map { $0.lowercased().hasPrefix("https:") } ?? false
  }

  /// Problems with which a server still starts, for its operator.
  var warnings: [String] {
    var found: [String] = []
    // A warning: a server that runs with such a name has its data under it.
    if !container.isEmpty, !NameRules.isIdentifier(container) {
      found.append("container: \(container) is no identifier. \(NameRules.identifierRule)")
    }
    if isOpen, tlsCertificate == nil, trustedProxies.isEmpty {
      found.append(
        "host: \(host) is open to other machines without TLS; name a certificate, or the proxy that "
          + "terminates TLS in trustedProxies"
      )
    }
    if isAdministrationOpen, tlsCertificate == nil {
      found.append(
        "adminListen: \(adminListen ?? "") is open to other machines without TLS, also where a proxy has the "
          + "public address: operators' tokens and passwords cross the network in clear text; use a "
          + "loopback address and a tunnel, or name a certificate"
      )
    }
    if isBehindUnnamedProxy {
      found.append(
        "trustedProxies: the proxy that terminates TLS for \(publicURL ?? "") is not named, so that "
          + "all clients count as one network: thirty wrong passwords of one client block the "
          + "sign-in of all; name the proxy's address, such as 127.0.0.1"
      )
    }
    if let database, PostgreSQLAddress.isUnverified(database), PostgreSQLAddress.namesMode(database)
    {
      found.append(
        "database: the connection to another machine does not check that machine's certificate; "
          + "add sslmode=verify-full to the URL"
      )
    }
    if let s3, s3.isPlainToAnotherMachine, s3.allowPlainHTTP == true {
      found.append(
        "s3.endpoint: files are sent to \(s3.endpoint) without TLS, as allowPlainHTTP permits"
      )
    }
    return found + (smtp?.warnings ?? [])
  }

  /// Every problem that prevents a server from running as configured, each as a sentence.
  var problems: [String] {
    var found: [String] = []
    if !(0...65_535).contains(port) { found.append("port: \(port) is not between 0 and 65535") }
    if container.isEmpty { found.append("container: a container needs a name") }
    if (tlsCertificate == nil) != (tlsKey == nil) {
      found.append("tlsCertificate and tlsKey: HTTPS needs both")
    }
    for (name, path) in [("tlsCertificate", tlsCertificate), ("tlsKey", tlsKey)] {
      if let path, !FileManager.default.isReadableFile(atPath: path) {
        found.append("\(name): the file \(path) cannot be read")
      }
    }
    if let tlsCertificate, let tlsKey, found.isEmpty {
      found += CloudKitHTTPServer.TLS(certificatePath: tlsCertificate, keyPath: tlsKey)
        .problems(at: Date())
    }
    for (name, text) in [("publicURL", publicURL), ("assetURL", assetURL)] {
      guard let text else { continue }
      let parts = URLComponents(string: text)
      if parts?.host == nil || !["http", "https"].contains(parts?.scheme ?? "") {
        found.append("\(name): \(text) is not an address such as https://cloud.example.org")
      } else if let path = parts?.path, !["", "/"].contains(path) {
        found.append("\(name): \(text) has a path, below which nothing is served; leave it out")
      }
    }
    if let keyFile, URL(fileURLWithPath: keyFile).hasDirectoryPath {
      found.append("keyFile: \(keyFile) is a folder; name a file in it")
    }
    if let adminListen, AdministrationListener(adminListen) == nil {
      found.append("adminListen: \(adminListen) is not an address such as 127.0.0.1:8081")
    }
    if port != 0, let own = adminListen.flatMap({ AdministrationListener($0) }), own.host == host,
      own.port == port
    {
      found.append("adminListen: \(host):\(port) is host and port; give it a port of its own")
    }
    if TrustedProxies(trustedProxies) == nil {
      found.append("trustedProxies: each is an address or a network such as 10.0.0.0/8")
    }
    if let database, !database.hasPrefix("postgresql://"), !database.hasPrefix("postgres://") {
      found.append("database: it is not a URL such as postgresql://USER@HOST/NAME")
    }
    if let database, PostgreSQLAddress.isUnverified(database),
      !PostgreSQLAddress.namesMode(database)
    {
      found.append(
        "database: the URL names another machine and has no sslmode, so that the connection might "
          + "be in clear text; add sslmode=verify-full, or sslmode=disable in a network of your own"
      )
    }
    if let s3, s3.isPlainToAnotherMachine, s3.allowPlainHTTP != true {
      found.append(
        "s3.endpoint: \(s3.endpoint) is another machine without TLS; use https:, or set "
          + "s3.allowPlainHTTP in a network of your own"
      )
    }
    for (name, number) in [("rateLimit", rateLimit), ("rateBurst", rateBurst)] {
      if let number, number <= 0 || !number.isFinite {
        found.append("\(name): \(number) is not above zero")
      }
    }
    let quotas = [
      ("userQuota", userQuota), ("publicQuota", publicQuota), ("publicUserQuota", publicUserQuota),
    ]
    for (name, number) in quotas {
      if let number, number < 0 { found.append("\(name): \(number) is below zero") }
    }
    if let assetLimit, assetLimit < 1 {
      found.append("assetLimit: \(assetLimit) is not above zero")
    }
    if LogSettings.level(logLevel) == nil { found.append("logLevel: there is no '\(logLevel)'") }
    if !["text", "json"].contains(logFormat) {
      found.append("logFormat: '\(logFormat)' is neither text nor json")
    }
    if let s3, URLComponents(string: s3.endpoint)?.host == nil {
      found.append("s3.endpoint: \(s3.endpoint) is not an address")
    }
    if let openID { found += openID.problems(registration: registration) }
    if let smtp { found += smtp.problems(isExposed: isExposed, publicURL: publicURL) }
    if isExposed, servedEnvironment == .development, !allowPublicDevelopment {
      found.append(
        "environment: development has a demo account and tokens for every container, and other "
          + "machines reach this server; choose production, or set allowPublicDevelopment"
      )
    }
    return found
  }
}
