import Foundation

/// The page's HTML; the form works without scripts, only the hand-over needs one.
struct SignInPage {
  struct HandOver {
    var token: String
    var origins: [String]
  }

  var container: String
  var userName = ""
  var message: String?
  var hasForm = false
  var handOver: HandOver?

  var html: String {
    """
    <!DOCTYPE html>
    <html lang="en">
    <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>Sign in</title>
    <style>\(Self.style)</style>
    </head>
    <body>
    <main>
    <svg viewBox="0 0 48 48" aria-hidden="true"><path d="M24 4c7 9 13 16 13 24a13 13 0 0 1-26 \
    0C11 20 17 13 24 4Z"/></svg>
    <h1>Sign in</h1>
    <p class="to">to use <strong>\(Self.escape(container))</strong></p>
    \(messageHTML)\(formHTML)\(scriptHTML)
    </main>
    </body>
    </html>

    """
  }

  private var messageHTML: String {
    guard let message else { return "" }
    return "<p class=\"message\" role=\"status\">\(Self.escape(message))</p>\n"
  }

  private var formHTML: String {
    guard hasForm else { return "" }
    return """
      <form method="post">
      <label>User name
      <input name="user" autocomplete="username" autocapitalize="none" spellcheck="false"
       value="\(Self.escape(userName))" required \(userName.isEmpty ? "autofocus" : "")></label>
      <label>Password
      <input name="password" type="password" autocomplete="current-password" required \
      \(userName.isEmpty ? "" : "autofocus")></label>
      <label class="keep"><input name="keep" type="checkbox" checked> Keep me signed in</label>
      <button>Sign in</button>
      </form>
      """
  }

  private var scriptHTML: String {
    guard let handOver else { return "" }
    func literal(_ value: some Encodable) -> String {
      let data = (try? JSONEncoder().encode(value)) ?? Data("null".utf8)
      // Inside a script element the text "</" would end it.
      return String(decoding: data, as: UTF8.self).replacing("</", with: "<\\/")
    }
    return """
      <script>
      const token = \(literal(handOver.token));
      if (window.opener) {
        for (const origin of \(literal(handOver.origins))) {
          window.opener.postMessage({ckSession: token, ckWebAuthToken: token}, origin);
        }
        setTimeout(() => window.close(), 400);
      }
      </script>
      """
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
    """
}
