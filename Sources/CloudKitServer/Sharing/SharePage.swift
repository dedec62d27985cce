import Foundation

/// The page at a share's address: what is shared, by whom, and how to take part.
///
/// It has no script, and whatever people wrote is text in it.
struct SharePage {
  /// What the page offers to do next.
  enum Step {
    case signIn(userName: String)
    /// The seal proves who is signed in, for a few minutes.
    case accept(person: String, seal: String)
    case joined
    case none
  }

  var container: String
  /// Nil where the reader may not know it, or not yet.
  var title: String?
  var owner: String?
  /// Whether the reader may change what is shared.
  var canWrite = false
  var address = ""
  var message: String?
  var step = Step.none

  var html: String {
    """
    <!DOCTYPE html>
    <html lang="en">
    <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="robots" content="noindex">
    <title>\(Self.escape(title ?? "Shared with you"))</title>
    <style>\(Self.style)</style>
    </head>
    <body>
    <main>
    <svg viewBox="0 0 48 48" aria-hidden="true"><path d="M24 4c7 9 13 16 13 24a13 13 0 0 1-26 \
    0C11 20 17 13 24 4Z"/></svg>
    <h1>\(Self.escape(title ?? "Shared with you"))</h1>
    \(ownerHTML)\(messageHTML)\(stepHTML)\(openingHTML)
    </main>
    </body>
    </html>

    """
  }

  private var ownerHTML: String {
    guard let owner else {
      return "<p class=\"quiet\">in <strong>\(Self.escape(container))</strong></p>\n"
    }
    return """
      <p class="quiet">shared by <strong>\(Self.escape(owner))</strong>, \
      \(canWrite ? "for you to read and change" : "for you to read")</p>

      """
  }

  private var messageHTML: String {
    guard let message else { return "" }
    return "<p class=\"message\" role=\"status\">\(Self.escape(message))</p>\n"
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
       value="\(Self.escape(userName))" required></label>
      <label>Password
      <input name="password" type="password" autocomplete="current-password" required></label>
      <button>Sign in to join</button>
      </form>

      """
    case .accept(let person, let seal):
      """
      <form method="post">
      <input type="hidden" name="seal" value="\(Self.escape(seal))">
      <p>You are signed in as <strong>\(Self.escape(person))</strong>.</p>
      <button>Join</button>
      </form>

      """
    }
  }

  private var openingHTML: String {
    guard !address.isEmpty else { return "" }
    return """
      <details>
      <summary>Open it in your app</summary>
      <p>In an app that uses <strong>\(Self.escape(container))</strong>, open this address:</p>
      <p><code>\(Self.escape(address))</code></p>
      </details>
      """
  }

  static func escape(_ text: String) -> String {
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
    main{width:min(26rem,calc(100vw - 2rem));margin:1rem 0;padding:2rem;background:var(--card);\
    border-radius:1rem;box-shadow:0 1px 2px #0002,0 12px 40px #0001}
    svg{display:block;width:2.5rem;fill:var(--deep)}
    h1{margin:.75rem 0 0;font-size:1.5rem;line-height:1.2;overflow-wrap:anywhere}
    p{margin:.5rem 0;overflow-wrap:anywhere}
    .quiet{margin:.25rem 0 1.25rem;color:var(--quiet)}
    .message{margin:0 0 1rem;padding:.6rem .8rem;border:1px solid var(--line);border-radius:.5rem}
    .done{border-color:var(--deep)}
    form{display:grid;gap:1rem}
    label{display:grid;gap:.25rem;font-size:.875rem;color:var(--quiet)}
    input:not([type=hidden]){padding:.6rem .75rem;font:inherit;font-size:1rem;color:var(--ink);\
    background:transparent;border:1px solid var(--line);border-radius:.5rem}
    input:focus-visible,button:focus-visible,summary:focus-visible{outline:2px solid var(--deep);\
    outline-offset:1px}
    button{padding:.7rem;font:inherit;font-weight:600;color:#fff;background:#0b6bcb;border:0;\
    border-radius:.5rem;cursor:pointer}
    details{margin-top:1.25rem;color:var(--quiet);font-size:.875rem}
    summary{cursor:pointer}
    code{font-size:.8125rem;overflow-wrap:anywhere}
    """
}
