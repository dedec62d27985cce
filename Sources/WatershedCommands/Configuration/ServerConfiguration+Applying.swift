import CloudKitServer
import CloudKitServerHTTP
import Foundation
import Logging

extension ServerConfiguration {
  /// The absolute URL of the data folder.
  var dataURL: URL { URL(fileURLWithPath: data, isDirectory: true).standardizedFileURL }

  /// The URL at which clients reach the server, as far as it is known before it listens.
  var clientURL: String {
    if let publicURL { return publicURL }
    let name = host == "0.0.0.0" || host == "::" ? "127.0.0.1" : host
    let scheme = tlsCertificate == nil ? "http" : "https"
    return "\(scheme)://\(name.contains(":") ? "[\(name)]" : name):\(port)"
  }

  /// The service's configuration: what the table of keys sets, and what follows from several keys.
  func apply(
    to configuration: inout ServiceConfiguration,
    token: String,
    _ logger: Logger
  ) throws {
    var http = CloudKitHTTPServer.Configuration()
    for key in Self.table { key.apply(self, &configuration, &http) }
    configuration.administratorToken = token
    configuration.renewAdministratorToken = { [dataURL] in try AdminTokenFile.renew(in: dataURL) }
    configuration.ownContainer = container
    configuration.allowedHosts = allowedHosts.map { $0.lowercased() }
    configuration.discovery =
      discovery ?? (servedEnvironment == .production ? .consent : .everyone)
    configuration.assetURL = assetURL.map { $0.hasSuffix("/") ? String($0.dropLast()) : $0 }
    configuration.keyFile = keyFile.map { URL(fileURLWithPath: $0) }
    configuration.logger = logger
    configuration.identityProvider = openID.map { OpenIDProvider($0.settings) }
    configuration.mailSender = try smtp.map {
      try SMTPMailer($0.settings(publicURL: publicURL))
    }
    // A burst of zero would refuse every request, so null means the default.
    configuration.limits.requestBurst = rateBurst ?? ServerConfiguration().rateBurst ?? 500
    if let assetLimit { configuration.limits.assetSize = assetLimit }
    if let s3 {
      configuration.assetStore = try S3AssetStore(
        S3AssetStore.Settings(
          endpoint: s3.endpoint,
          bucket: s3.bucket,
          region: s3.region,
          accessKey: s3.accessKey,
          secretKey: s3.secretKey,
          prefix: s3.prefix
        )
      )
    }
  }

  /// The HTTP server's configuration.
  var http: CloudKitHTTPServer.Configuration {
    var tls: CloudKitHTTPServer.TLS?
    if let tlsCertificate, let tlsKey {
      tls = CloudKitHTTPServer.TLS(certificatePath: tlsCertificate, keyPath: tlsKey)
    }
    var http = CloudKitHTTPServer.Configuration(
      tls: tls,
      trustedProxies: TrustedProxies(trustedProxies) ?? .none,
      administration: adminListen.flatMap { AdministrationListener($0) }
    )
    var service = ServiceConfiguration()
    for key in Self.table { key.apply(self, &service, &http) }
    http.version = WatershedCommand.configuration.version
    return http
  }
}
