import CloudKitWebServices

/// The page at a share's URL: the shared item, its owner, and how to join.
///
/// It has no script, and all user input in it is escaped.
struct SharePage {
  /// The next action that the page offers.
  enum Step {
    case signIn(userName: String)
    /// The seal identifies the signed-in user, for a few minutes.
    case accept(person: String, seal: String)
    /// For users who are not invited, whether or not the share accepts requests.
    case ask(person: String, seal: String)
    case joined
    case none
  }

  var container: String
  /// Nil if the reader may not see it, or not yet.
  var title: String?
  var owner: String?
  /// Whether the reader may change what is shared.
  var canWrite = false
  var address = ""
  var message: String?
  var step = Step.none

  func response(status: Int = 200) -> WebServiceResponse {
    var page = CardPage.page(
      heading: title ?? "Shared with you",
      "\(ownerHTML)\(CardPage.message(message))\(stepHTML)\(openingHTML)"
    )
    page.isListed = false
    page.keepsForms = true
    return page.response(status: status)
  }

  private var ownerHTML: String {
    guard let owner else {
      return "<p class=\"quiet\">in <strong>\(escape(container))</strong></p>\n"
    }
    return """
      <p class="quiet">shared by <strong>\(escape(owner))</strong>, \
      \(canWrite ? "for you to read and change" : "for you to read")</p>

      """
  }

  private var stepHTML: String {
    switch step {
    case .none: ""
    case .joined:
      """
      <p class="message done" role="status">You have joined. What is shared appears in your app \
      with its next sync.</p>

      """
    case .signIn(let userName):
      """
      <form method="post">
      <label>User name
      <input name="user" autocomplete="username" autocapitalize="none" spellcheck="false"
       value="\(escape(userName))" required></label>
      <label>Password
      <input name="password" type="password" autocomplete="current-password" required></label>
      <label>Code of your second factor, if you have one
      <input name="code" autocomplete="one-time-code" autocapitalize="none"
       spellcheck="false"></label>
      <button>Sign in to join</button>
      </form>

      """
    case .accept(let person, let seal): signedIn(person, seal, "<button>Join</button>")
    case .ask(let person, let seal):
      signedIn(person, seal, "<button name=\"ask\" value=\"yes\">Request access</button>")
    }
  }

  /// The common part of both forms for a signed-in user.
  private func signedIn(_ person: String, _ seal: String, _ button: String) -> String {
    """
    <form method="post">
    <input type="hidden" name="seal" value="\(escape(seal))">
    <p>You are signed in as <strong>\(escape(person))</strong>.</p>
    <p class="quiet">Your name and your e-mail address are shown to those who share.</p>
    \(button)
    </form>

    """
  }

  private var openingHTML: String {
    guard !address.isEmpty else { return "" }
    return """
      <details>
      <summary>Open it in your app</summary>
      <p>In an app that uses <strong>\(escape(container))</strong>, open this address:</p>
      <p><code>\(escape(address))</code></p>
      </details>
      """
  }

  private func escape(_ text: String) -> String { HTMLPage.escape(text) }
}
