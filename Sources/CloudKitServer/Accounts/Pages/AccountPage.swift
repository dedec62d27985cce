import CloudKitWebServices
import Foundation

/// A page about an account: a heading, a sentence, and one form or one token transfer.
///
/// Forms work without scripts. User input is escaped; the only script is our own and has a nonce,
/// so that no other can run.
struct AccountPage {
  /// One field of a form.
  struct Field {
    var name: String
    var label: String
    var type = "text"
    var value = ""
    var autocomplete = "off"
    var isRequired = true

    /// The fields of user name and password, as browsers fill them in.
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

  /// A token that is sent to the requesting page after a click.
  struct TokenTransfer {
    var token: String
    /// The origin of the only page that may receive it.
    var origin: String
  }

  var title: String
  /// The subject of the page, such as a container.
  var subject = ""
  var message: String?
  var fields: [Field] = []
  /// The URL that receives the form; nil: the page's own.
  var action: String?
  /// The label of the form's button.
  var button = ""
  /// The label of a second button, which sends the form without its fields, with `with=identity`.
  var otherButton: String?
  /// The label of a button that sends `answer=deny`, regardless of the fields.
  var refusal: String?
  var offersToStaySignedIn = false
  var tokenTransfer: TokenTransfer?
  /// Whether its form may only be sent to this server; not where an issuer's page may follow.
  var keepsForm = false
  /// Links to other pages: the URLs and labels.
  var links: [(address: String, text: String)] = []

  /// The page as a reply, with the nonce of its script if it has one.
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
    if tokenTransfer != nil { page.nonce = nonce }
    page.keepsForms = keepsForm
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
      offersToStaySignedIn
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
    guard let tokenTransfer else { return "" }
    return """
      <form id="consent">
      <button id="allow" type="button">Allow</button>
      <button id="deny" type="button" class="second">Cancel</button>
      </form>
      <script nonce="\(nonce)">
      const token = \(Self.literal(tokenTransfer.token));
      const origin = \(Self.literal(tokenTransfer.origin));
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
        answer({errorMessage: "The user did not allow the sign-in."},
          "Access was denied. You can close this window."));
      </script>
      """
  }

  /// A text as a JavaScript literal; inside a script element the bytes of "</" would end it.
  private static func literal(_ value: String) -> String {
    let data = (try? WireCoding.encode(value)) ?? Data("null".utf8)
    let sign = UInt8(ascii: "<")
    return String(
      decoding: data.flatMap { $0 == sign ? Array("\\u003C".utf8) : [$0] },
      as: UTF8.self
    )
  }

  private func escape(_ text: String) -> String { HTMLPage.escape(text) }
}
