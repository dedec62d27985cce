import CloudKitServer
import CloudKitWebServices

/// The page at the root: what this server is.
///
/// It shows no record and no name of a person.
package struct LandingPage: Hashable, Sendable {
  /// A container of the server and the link to its sign-in page.
  package struct Container: Hashable, Sendable {
    package var identifier: String
    package var signInURL: String?

    package init(identifier: String, signInURL: String? = nil) {
      self.identifier = identifier
      self.signInURL = signInURL
    }
  }

  /// Nil where the reader may not know them.
  package var containers: [Container]?

  /// What strangers are shown.
  package static var forEveryone: LandingPage {
    var page = LandingPage()
    page.containers = nil
    return page
  }

  package init(containers: [Container] = []) {
    self.containers = containers
  }

  var response: WebServiceResponse {
    HTMLPage(
      title: "Watershed",
      body: """
        <h1>Watershed</h1>
        <p>This server keeps CloudKit records and answers CloudKit's web services.
        Apps reach it through the address of this page, a container and an API token.</p>
        \(containerSection)
        <p class="quiet"><a href="/healthz">Health</a> · Records are shown to nobody here:
        reading them takes an API token and, for private data, a signed-in person.</p>
        """,
      style: Self.style
    ).response()
  }

  private var containerSection: String {
    guard let containers else { return "" }
    guard !containers.isEmpty else { return "<p>It has no containers yet.</p>" }
    let rows = containers.map { container in
      let link = container.signInURL.map {
        "<a href=\"\(HTMLPage.escape($0))\">Sign in</a>"
      }
      return """
        <tr><td><code>\(HTMLPage.escape(container.identifier))</code></td><td>\(link ?? "")</td></tr>
        """
    }
    return """
      <h2>Containers</h2>
      <table>
      <thead><tr><th scope="col">Identifier</th><th scope="col">Account</th></tr></thead>
      <tbody>
      \(rows.joined(separator: "\n"))
      </tbody>
      </table>
      """
  }

  private static let style = """
    :root { color-scheme: light dark; }
    body { font: 16px/1.5 system-ui, sans-serif; margin: 0; }
    main { max-width: 44rem; margin: 4rem auto; padding: 0 1.5rem; }
    h1 { font-size: 1.75rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
    table { border-collapse: collapse; width: 100%; }
    th, td { text-align: left; padding: .4rem .6rem .4rem 0; border-bottom: 1px solid #8884; }
    .quiet { opacity: .75; font-size: .9rem; margin-top: 2rem; }
    """
}
