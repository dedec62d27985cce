import CloudKitWebServices
import Foundation

/// A page about somebody's account: a heading, a sentence, and one form or one hand-over.
///
/// Forms work without scripts. What people typed is escaped; the only script is ours and named by a
/// nonce, so that nothing else can run.
struct AccountPage {
  /// One line of a form.
  struct Field {
    var name: String
    var label: String
    var type = "text"
    var value = ""
    var autocomplete = "off"
    var isRequired = true

    /// The lines that say who somebody is, as browsers fill them in.
    static func credentials(user: String) -> [Field] {
      [
        Field(name: "user", label: "User name", value: user, autocomplete: "username"),
        Field(
          name: "password",
          label: "Password",
          type: "password",
          autocomplete: "current-password"
        ),
        Field(
          name: "code",
          label: "Code of your second factor, if you have one",
          autocomplete: "one-time-code",
          isRequired: false
        ),
      ]
    }
  }

  /// A token that waits for a click before it goes to the page that asked.
  struct HandOver {
    var token: String
    /// The only page that may have it.
    var origin: String
  }

  var title: String
  /// What the page is about, such as a container.
  var subject = ""
  var message: String?
  var fields: [Field] = []
  /// Where the form goes; nil: to the page's own address.
  var action: String?
  /// The text of the form's button.
  var button = ""
  /// The words of a second button, which sends the form without its fields, with `with=identity`.
  var otherButton: String?
  /// The words of a button that sends `answer=deny`, whatever the fields hold.
  var refusal: String?
  var offersToKeep = false
  var handOver: HandOver?
  /// Where else to go: the addresses and the words of links.
  var links: [(address: String, text: String)] = []

  /// The page as a reply; the nonce names its script, where it has one.
  func response(status: Int = 200, nonce: String) -> WebServiceResponse {
    let to =
      subject.isEmpty ? "" : "<p class=\"quiet\">to use <strong>\(escape(subject))</strong></p>"
    var page = CardPage.page(
      heading: title,
      """
      \(to)
      \(CardPage.message(message))\(formHTML)\(handOverHTML(nonce: nonce))\(linksHTML)
      """
    )
    if handOver != nil { page.nonce = nonce }
    return page.response(status: status)
  }

  private var linksHTML: String {
    links.map {
      "<p class=\"quiet\"><a href=\"\(escape($0.address))\">\(escape($0.text))</a></p>\n"
    }.joined()
  }

  private var formHTML: String {
    guard !fields.isEmpty else { return "" }
    let first = fields.first { $0.value.isEmpty }?.name
    let lines = fields.map { field in
      field.type == "hidden"
        ? "<input name=\"\(field.name)\" type=\"hidden\" value=\"\(escape(field.value))\">"
        : """
        <label>\(escape(field.label))
        <input name="\(field.name)" type="\(field.type)" autocomplete="\(field.autocomplete)" \
        autocapitalize="none" spellcheck="false" value="\(escape(field.value))" \
        \(field.isRequired ? "required" : "") \(field.name == first ? "autofocus" : "")></label>
        """
    }
    let keep =
      offersToKeep
      ? "<label class=\"keep\"><input name=\"keep\" type=\"checkbox\" checked> "
        + "Keep me signed in</label>\n" : ""
    let other = otherButton.map {
      "<button name=\"with\" value=\"\(CloudKitService.identityButton)\" class=\"second\" "
        + "formnovalidate>\(escape($0))</button>\n"
    }
    return """
      <form method="post"\(action.map { " action=\"\($0)\"" } ?? "")>
      \(lines.joined(separator: "\n"))
      \(keep)<button>\(escape(button))</button>
      \(other ?? "")\
      \(refusalHTML)\
      </form>
      """
  }

  private var refusalHTML: String {
    guard let refusal else { return "" }
    return "<button name=\"answer\" value=\"deny\" class=\"second\" formnovalidate>"
      + "\(escape(refusal))</button>\n"
  }

  private func handOverHTML(nonce: String) -> String {
    guard let handOver else { return "" }
    return """
      <form id="consent">
      <button id="allow" type="button">Allow</button>
      <button id="deny" type="button" class="second">Cancel</button>
      </form>
      <script nonce="\(nonce)">
      const token = \(Self.literal(handOver.token));
      const origin = \(Self.literal(handOver.origin));
      function answer(message, text) {
        const isThere = window.opener && !window.opener.closed;
        if (isThere) { window.opener.postMessage(message, origin); }
        // A window that no script has opened stays open.
        const end = document.createElement("p");
        end.setAttribute("role", "status");
        end.textContent = isThere ? text
          : "The page that asked for this is closed. Open it, and sign in there again.";
        document.getElementById("consent").replaceWith(end);
        setTimeout(() => window.close(), 400);
      }
      document.getElementById("allow").addEventListener("click", () =>
        answer({ckSession: token, ckWebAuthToken: token},
          "You are signed in. You can close this window."));
      document.getElementById("deny").addEventListener("click", () =>
        answer({errorMessage: "The person did not allow the sign-in."},
          "The app was not let in. You can close this window."));
      </script>
      """
  }

  /// A text as JavaScript; inside a script element the characters "</" would end it.
  private static func literal(_ value: String) -> String {
    let data = (try? WireCoding.encode(value)) ?? Data("null".utf8)
    return String(decoding: data, as: UTF8.self).replacing("<", with: "\\u003C")
  }

  private func escape(_ text: String) -> String { HTMLPage.escape(text) }
}
