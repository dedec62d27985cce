import CloudKitServer
import CloudKitWebServices

/// The page at the root path: what this server is.
///
/// It shows no records and no users.
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

  /// Nil if the reader may not see them.
  package var containers: [Container]?

  /// The page for clients on other machines.
  package static var forEveryone: LandingPage {
    var page = LandingPage()
    page.containers = nil
    return page
  }

  package init(containers: [Container] = []) {
    self.containers = containers
  }

  var response: WebServiceResponse {
    CardPage.page(
      heading: "Watershed",
      """
      <p>This server keeps CloudKit records and answers CloudKit's web services.
      Apps reach it through the address of this page, a container and an API token.</p>
      \(containerSection)
      <p><a href="\(Route.Section.myAccount.path)">Your account</a></p>
      <p class="quiet">No record is shown here: reading one takes an API token and, for private data,
      a signed-in person.</p>
      """
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
}
