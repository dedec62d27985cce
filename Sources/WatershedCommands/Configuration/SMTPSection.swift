import CloudKitServer
import CloudKitServerHTTP
import CloudKitWebServices
import Foundation

/// The part of a configuration about the mail server that takes the server's mails.
struct SMTPSection: Codable, Hashable, Sendable {
  /// The name of the mail server, such as `mail.example.org`.
  var host: String
  /// Its TCP port; absent: 587 with `starttls`, 465 with `tls`, 25 with `none`.
  var port: Int?
  /// How the connection is encrypted: `starttls` (TLS or no mail at all), `tls` from the first byte
  /// on, or `none`, for a relay on a private network; absent: `starttls`.
  var security: SMTPSettings.Security?
  /// The user name for signing in there; absent: no sign-in.
  var user: String?
  /// The password of `user`.
  var password: String?
  /// A file with the password of `user`, read for each connection.
  var passwordFile: String?
  /// The address that mails come from, such as `watershed@example.org`.
  var from: String
  /// The name beside that address; absent: the host name of `publicURL`.
  var name: String?
  /// A file with the certificates in PEM that sign the mail server's; absent: the system's list.
  var certificateAuthority: String?

  func settings(publicURL: String?) -> SMTPSettings {
    let host = publicURL.flatMap { URLComponents(string: $0)?.host }
    return SMTPSettings(
      host: self.host,
      port: port,
      security: security ?? .starttls,
      user: user,
      password: passwordFile.map { .file($0) } ?? password.map { .text($0) },
      from: from,
      name: name ?? host ?? "Watershed",
      certificateAuthority: certificateAuthority,
      clientName: host ?? "localhost"
    )
  }

  /// Everything that prevents mails from being sent, or sent safely, each as a sentence.
  func problems(isExposed: Bool, publicURL: String?) -> [String] {
    var found: [String] = []
    if host.isEmpty || host.contains(where: { $0.isWhitespace || $0 == "/" }) {
      found.append("smtp.host: \(host) is not the name of a machine")
    }
    if let port, !(1...65_535).contains(port) {
      found.append("smtp.port: \(port) is not between 1 and 65535")
    }
    if EmailAddress.objection(to: from) != nil {
      found.append("smtp.from: \(from) is not an e-mail address")
    }
    if password != nil, passwordFile != nil {
      found.append("smtp.password and smtp.passwordFile: one of the two is enough")
    }
    if (user == nil) != (password == nil && passwordFile == nil) {
      found.append("smtp.user: set it together with smtp.password or smtp.passwordFile")
    }
    for (key, path) in [
      ("passwordFile", passwordFile), ("certificateAuthority", certificateAuthority),
    ] {
      if let path, !FileManager.default.isReadableFile(atPath: path) {
        found.append("smtp.\(key): the file \(path) cannot be read")
      }
    }
    if found.isEmpty, certificateAuthority != nil {
      do {
        _ = try SMTPMailer(settings(publicURL: publicURL))
      } catch {
        found.append("smtp.certificateAuthority: the file holds no certificates: \(error)")
      }
    }
    if security == SMTPSettings.Security.none, user != nil, !isOfThisMachine {
      found.append("smtp.security: without TLS the password is sent in clear text")
    }
    if isExposed, publicURL == nil {
      found.append("smtp: links in mails begin with publicURL, which is missing")
    }
    return found
  }

  /// Problems that do not prevent mails but that the operator should know.
  var warnings: [String] {
    guard security == SMTPSettings.Security.none, !isOfThisMachine else { return [] }
    return [
      "smtp.security: without TLS anyone on the path to \(host) can read the links in mails"
    ]
  }

  private var isOfThisMachine: Bool { LoopbackHost.contains(host) }
}
