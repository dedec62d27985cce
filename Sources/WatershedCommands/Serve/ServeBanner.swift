import CloudKitServer
import CloudKitWebServices
import Foundation

/// How much a server prints when it listens.
enum BannerStyle: String, Codable, CaseIterable, Sendable {
  /// With credentials: an API token, an account or an invitation, and lines to paste.
  case full
  /// The address alone, because the output may be kept as a log.
  case brief
}

/// The text that a server prints when it listens.
struct ServeBanner {
  var credentials: InitialCredentials
  var url: String
  var dataFolder: String
  var style = BannerStyle.full

  /// The path of the sign-in page.
  static func signInPath(container: String, apiToken: String) -> String {
    "\(Route.Section.signIn.path)?ckAPIToken=\(WebServicePath.escape(apiToken))"
      + "&container=\(WebServicePath.escape(container))"
  }

  private var invitationURL: String? {
    credentials.invitation.map { url + AccountService.signUpPath(invitation: $0) }
  }

  private var signInURL: String {
    url + Self.signInPath(container: credentials.container, apiToken: credentials.apiToken)
  }

  /// The Swift code to paste into an app.
  var swift: String {
    let environment =
      credentials.environment == .production ? "\n  environment: .production," : ""
    // Without a guest account, the app sends users to the sign-in page.
    let apiToken = "apiToken: \"\(credentials.apiToken)\""
    let tokens =
      credentials.guest.map { "\(apiToken),\n  webAuthToken: \"\($0.webAuthToken)\"" } ?? apiToken
    return """
      import CloudKit
      import CoreData

      CKContainer.configure(CKContainerConfiguration(
        url: URL(string: "\(url)"),
        containerIdentifiers: ["\(credentials.container)"],\(environment)
        \(tokens)
      ))
      let container = NSPersistentCloudKitContainer(name: "Model")
      container.persistentStoreDescriptions.first?.cloudKitContainerOptions =
        NSPersistentCloudKitContainerOptions(containerIdentifier: "\(credentials.container)")
      container.loadPersistentStores { _, error in
        if let error { fatalError("\\(error)") }
      }
      """
  }

  /// A shell command that requests the current user.
  var curl: String {
    let name = WebServicePath.escape(credentials.container)
    let path = "/database/1/\(name)/\(credentials.environment.rawValue)/public/users/caller"
    let user =
      credentials.guest.map { "&ckWebAuthToken=\(WebServicePath.escape($0.webAuthToken))" } ?? ""
    return "curl '\(url)\(path)?ckAPIToken=\(WebServicePath.escape(credentials.apiToken))\(user)'"
  }

  /// The JavaScript that configures CloudKit JS for this server.
  var javaScript: String {
    """
    CloudKit.configure({ containers: [{
      containerIdentifier: '\(credentials.container)',
      environment: '\(credentials.environment.rawValue)',
      apiTokenAuth: { apiToken: '\(credentials.apiToken)', persist: true },
      publicDatabasePartition: '\(url)',
      privateDatabasePartition: '\(url)'
    }] })
    """
  }

  private static func indented(_ lines: String) -> String {
    lines.split(separator: "\n", omittingEmptySubsequences: false)
      .map { $0.isEmpty ? "" : "  \($0)" }
      .joined(separator: "\n")
  }

  /// A command on this server, wherever it is run: another folder may have a server's data too.
  private func command(_ verb: String) -> String {
    "watershed users \(verb) --data \(Self.quoted(dataFolder))"
  }

  /// The path quoted for a shell.
  static func quoted(_ path: String) -> String {
    guard path.wholeMatch(of: #/[\w./+,:@%-]+/#) == nil else { return path }
    return "'" + path.replacing("'", with: "'\\''") + "'"
  }

  /// The banner as text.
  var text: String {
    style == .brief ? "Watershed listens on \(url)\n" : fullText
  }

  private var fullText: String {
    var account = "\(command("invite")) prints a link for one"
    if let guest = credentials.guest {
      account =
        guest.password.map { "\(guest.userName), password \($0) (shown this once)" }
        ?? "\(guest.userName), password as the first start printed it"
    } else if let link = invitationURL {
      account = "create the administrator's: \(link)"
    }
    let paste =
      credentials.guest.map { "Paste this into an app; it is signed in as \($0.userName):" }
      ?? "Paste this into an app:"
    return """

      Watershed listens on \(url)

        container    \(credentials.container) (\(credentials.environment.rawValue))
        API token    \(credentials.apiToken)
        account      \(account)
        sign in      \(signInURL)
        data         \(dataFolder)

      \(paste)

      \(Self.indented(swift))

      A page with CloudKit JS begins with

      \(Self.indented(javaScript))

      and a shell requests its user with

        \(curl)

      Ctrl-C stops the server. To add accounts while it runs:

        \(command("add NAME"))


      """
  }

  /// The banner as one line of JSON.
  var json: String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    guard style == .full else {
      let facts = BriefFacts(
        url: url,
        container: credentials.container,
        environment: credentials.environment,
        dataFolder: dataFolder
      )
      return ((try? encoder.encode(facts)).map { String(decoding: $0, as: UTF8.self) } ?? "{}")
        + "\n"
    }
    let facts = Facts(
      url: url,
      container: credentials.container,
      environment: credentials.environment,
      apiToken: credentials.apiToken,
      account: credentials.guest.map { Facts.Account(name: $0.userName, password: $0.password) },
      webAuthToken: credentials.guest?.webAuthToken,
      invitationURL: invitationURL,
      signInURL: signInURL,
      dataFolder: dataFolder,
      swift: swift,
      javaScript: javaScript,
      curl: curl
    )
    return ((try? encoder.encode(facts)).map { String(decoding: $0, as: UTF8.self) } ?? "{}") + "\n"
  }

  private struct BriefFacts: Encodable {
    var schema = 1
    var url: String
    var container: String
    var environment: ContainerEnvironment
    var dataFolder: String
  }

  /// Keys are only added; `schema` changes when a meaning does.
  private struct Facts: Encodable {
    struct Account: Encodable {
      var name: String
      var password: String?
    }

    var schema = 1
    var url: String
    var container: String
    var environment: ContainerEnvironment
    var apiToken: String
    var account: Account?
    var webAuthToken: String?
    var invitationURL: String?
    var signInURL: String
    var dataFolder: String
    var swift: String
    var javaScript: String
    var curl: String
  }
}
