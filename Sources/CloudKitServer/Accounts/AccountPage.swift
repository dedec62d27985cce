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
  /// Where else to go: the address and the words of a link.
  var link: (address: String, text: String)?

  private func html(nonce: String) -> String {
    """
    <!DOCTYPE html>
    <html lang="en">
    <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>\(Self.escape(title))</title>
    <style>\(Self.style)</style>
    </head>
    <body>
    <main>
    <svg viewBox="0 0 48 48" aria-hidden="true"><path d="M24 4c7 9 13 16 13 24a13 13 0 0 1-26 \
    0C11 20 17 13 24 4Z"/></svg>
    <h1>\(Self.escape(title))</h1>
    \(subject.isEmpty ? "" : "<p class=\"to\">to use <strong>\(Self.escape(subject))</strong></p>")
    \(messageHTML)\(formHTML)\(handOverHTML(nonce: nonce))\(linkHTML)
    </main>
    </body>
    </html>

    """
  }

  /// The page as a reply; scripts of anybody else, frames and caches are kept away from it.
  func response(status: Int = 200, nonce: String) -> WebServiceResponse {
    let scripts = handOver == nil ? "" : " script-src 'nonce-\(nonce)';"
    return WebServiceResponse(
      status: status,
      headers: [
        WebServiceName.contentType: "text/html; charset=UTF-8",
        "cache-control": "no-store",
        "content-security-policy":
          "default-src 'none'; style-src 'unsafe-inline';\(scripts) base-uri 'none'; "
          + "frame-ancestors 'none'",
        "referrer-policy": "no-referrer",
        "x-frame-options": "DENY",
        "x-content-type-options": "nosniff",
      ],
      body: Data(html(nonce: nonce).utf8)
    )
  }

  private var messageHTML: String {
    guard let message else { return "" }
    return "<p class=\"message\" role=\"status\">\(Self.escape(message))</p>\n"
  }

  private var linkHTML: String {
    guard let link else { return "" }
    return
      "<p class=\"to\"><a href=\"\(Self.escape(link.address))\">\(Self.escape(link.text))</a></p>\n"
  }

  private var formHTML: String {
    guard !fields.isEmpty else { return "" }
    let first = fields.first { $0.value.isEmpty }?.name
    let lines = fields.map { field in
      field.type == "hidden"
        ? "<input name=\"\(field.name)\" type=\"hidden\" value=\"\(Self.escape(field.value))\">"
        : """
        <label>\(Self.escape(field.label))
        <input name="\(field.name)" type="\(field.type)" autocomplete="\(field.autocomplete)" \
        autocapitalize="none" spellcheck="false" value="\(Self.escape(field.value))" \
        \(field.isRequired ? "required" : "") \(field.name == first ? "autofocus" : "")></label>
        """
    }
    let keep =
      offersToKeep
      ? "<label class=\"keep\"><input name=\"keep\" type=\"checkbox\" checked> "
        + "Keep me signed in</label>\n" : ""
    let other = otherButton.map {
      "<button name=\"with\" value=\"\(CloudKitService.identityButton)\" class=\"second\" "
        + "formnovalidate>\(Self.escape($0))</button>\n"
    }
    return """
      <form method="post"\(action.map { " action=\"\($0)\"" } ?? "")>
      \(lines.joined(separator: "\n"))
      \(keep)<button>\(Self.escape(button))</button>
      \(other ?? "")\
      \(refusalHTML)\
      </form>
      """
  }

  private var refusalHTML: String {
    guard let refusal else { return "" }
    return "<button name=\"answer\" value=\"deny\" class=\"second\" formnovalidate>"
      + "\(Self.escape(refusal))</button>\n"
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
      function answer(message) {
        if (window.opener) { window.opener.postMessage(message, origin); }
        document.getElementById("consent").remove();
        setTimeout(() => window.close(), 400);
      }
      document.getElementById("allow").addEventListener("click", () =>
        answer({ckSession: token, ckWebAuthToken: token}));
      document.getElementById("deny").addEventListener("click", () =>
        answer({errorMessage: "The person did not allow the sign-in."}));
      </script>
      """
  }

  /// A text as JavaScript; inside a script element the characters "</" would end it.
  private static func literal(_ value: String) -> String {
    let data = (try? WireCoding.encode(value)) ?? Data("null".utf8)
    return String(decoding: data, as: UTF8.self).replacing("<", with: "\\u003C")
  }

  private static func escape(_ text: String) -> String {
    text.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;")
      .replacing("\"", with: "&quot;").replacing("'", with: "&#39;")
  }

  private static let style = """
    :root{color-scheme:light dark;--ink:#1d2733;--quiet:#5c6b7a;--page:#eef3f7;--card:#fff;\
    --line:#c9d4de;--deep:#0b6bcb}
    @media(prefers-color-scheme:dark){:root{--ink:#e8eef4;--quiet:#9fb0c0;--page:#10171e;\
    --card:#1a242e;--line:#3a4957;--deep:#4aa3ff}}
    *{box-sizing:border-box}
    body{margin:0;min-height:100vh;display:grid;place-items:center;background:var(--page);\
    color:var(--ink);font:16px/1.5 system-ui,sans-serif}
    main{width:min(24rem,calc(100vw - 2rem));padding:2rem;background:var(--card);\
    border-radius:1rem;box-shadow:0 1px 2px #0002,0 12px 40px #0001}
    svg{display:block;width:2.5rem;fill:var(--deep)}
    h1{margin:.75rem 0 0;font-size:1.5rem;line-height:1.2}
    .to{margin:.25rem 0 1.25rem;color:var(--quiet);overflow-wrap:anywhere}
    .message{padding:.6rem .8rem;border:1px solid var(--line);border-radius:.5rem}
    form{display:grid;gap:1rem}
    label{display:grid;gap:.25rem;font-size:.875rem;color:var(--quiet)}
    .keep{display:flex;gap:.5rem;align-items:center}
    input:not([type=checkbox]){padding:.6rem .75rem;font:inherit;font-size:1rem;color:var(--ink);\
    background:transparent;border:1px solid var(--line);border-radius:.5rem}
    input:focus-visible,button:focus-visible{outline:2px solid var(--deep);outline-offset:1px}
    button{padding:.7rem;font:inherit;font-weight:600;color:#fff;background:#0b6bcb;border:0;\
    border-radius:.5rem;cursor:pointer}
    .second{color:var(--ink);background:transparent;border:1px solid var(--line)}
    """
}
