import CloudKitServer
import CloudKitServerHTTP
import CloudKitWebServices

/// The tables of keys, one line for each property.
extension ServerConfiguration {
  static let table: [ConfigurationKey<ServerConfiguration>] = [
    .shown("data", \.data),
    .shown("database", \.database, hiding: hidingPassword),
    .shown("host", \.host, sets: .http(\.host)),
    .shown("port", \.port, sets: .http(\.port)),
    .shown("container", \.container),
    .shown("environment", \.environment),
    .shown("allowPublicDevelopment", \.allowPublicDevelopment),
    .shown("publicURL", \.publicURL),
    .shown("assetURL", \.assetURL),
    .shown("tlsCertificate", \.tlsCertificate),
    .shown("tlsKey", \.tlsKey),
    .shown("trustedProxies", \.trustedProxies),
    .shown("allowedHosts", \.allowedHosts),
    .shown("registration", \.registration, sets: .service(\.registration)),
    .shown("discovery", \.discovery),
    .shown(
      "allowUnindexedQueries",
      \.allowUnindexedQueries,
      sets: .service(\.allowsUnindexedQueriesInDevelopment)
    ),
    .shown("rateLimit", \.rateLimit, sets: .service(\.limits.requestsPerSecond)),
    .shown("rateBurst", \.rateBurst),
    .shown("userQuota", \.userQuota, sets: .service(\.limits.userQuota)),
    .shown("publicQuota", \.publicQuota, sets: .service(\.limits.publicQuota)),
    .shown("publicUserQuota", \.publicUserQuota, sets: .service(\.limits.publicUserQuota)),
    .shown("assetLimit", \.assetLimit),
    .shown("keyFile", \.keyFile),
    .shown("publicMetrics", \.publicMetrics, sets: .http(\.showsMetrics)),
    .shown("adminListen", \.adminListen),
    .shown("banner", \.banner),
    .shown("logLevel", \.logLevel),
    .shown("logFormat", \.logFormat),
    .shown("s3", \.s3) { $0?.redacted },
    .shown("openID", \.openID) { $0?.redacted },
    .shown("smtp", \.smtp) { $0?.redacted },
  ]

  /// The keys of objects; in the environment `WATERSHED_S3_BUCKET`, `WATERSHED_OPENID_ISSUER` and
  /// so on.
  static let sections = [
    Section(
      "s3",
      S3Settings.self,
      prefix: "S3",
      required: ["endpoint", "bucket", "accessKey", "secretKey"]
    ),
    Section("openID", OpenIDSection.self, prefix: "OPENID", required: ["issuer", "clientID"]),
    Section("smtp", SMTPSection.self, prefix: "SMTP", required: ["host", "from"]),
  ]

  /// The configuration without its secrets.
  var redacted: ServerConfiguration {
    var shown = self
    for key in Self.table { key.hide(&shown) }
    return shown
  }

  /// The password in a PostgreSQL URL is between the user and the host, or in the query.
  @Sendable private static func hidingPassword(_ database: String?) -> String? {
    database?
      .replacing(/(:\/\/[^:@\/]*):[^@\/]*@/) { "\($0.output.1):…@" }
      .replacing(/([?&](?:ssl)?password=)[^&]*/) { "\($0.output.1)…" }
  }
}

extension ServerConfiguration.S3Settings: ConfigurationSection {
  static let table: [ConfigurationKey<Self>] = [
    .shown("endpoint", \.endpoint),
    .shown("bucket", \.bucket),
    .shown("region", \.region),
    .shown("accessKey", \.accessKey),
    .secret("secretKey", \.secretKey),
    .shown("prefix", \.prefix),
    .shown("allowPlainHTTP", \.allowPlainHTTP),
  ]
}

extension OpenIDSection: ConfigurationSection {
  static let table: [ConfigurationKey<Self>] = [
    .shown("issuer", \.issuer),
    .shown("clientID", \.clientID),
    .secret("clientSecret", \.clientSecret),
    .shown("name", \.name),
    .shown("scopes", \.scopes),
    .shown("linksByEmail", \.linksByEmail),
    .shown("registration", \.registration),
  ]
}

extension SMTPSection: ConfigurationSection {
  static let table: [ConfigurationKey<Self>] = [
    .shown("host", \.host),
    .shown("port", \.port),
    .shown("security", \.security),
    .shown("user", \.user),
    .secret("password", \.password),
    .shown("passwordFile", \.passwordFile),
    .shown("from", \.from),
    .shown("name", \.name),
    .shown("certificateAuthority", \.certificateAuthority),
  ]
}
