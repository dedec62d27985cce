/// The layout of every page that the server shows to users: a card in the center, with a drop above
/// the heading.
package enum CardPage {
  /// A page with a heading and a body.
  package static func page(heading: String, _ body: String) -> HTMLPage {
    HTMLPage(
      title: heading,
      body: """
        <svg viewBox="11 4 26 37" aria-hidden="true"><path d="M24 4c7 9 13 16 13 24a13 13 0 0 1-26 \
        0C11 20 17 13 24 4Z"/></svg>
        <h1>\(HTMLPage.escape(heading))</h1>
        \(body)
        """,
      style: style
    )
  }

  /// A message about a result or an error.
  static func message(_ text: String?) -> String {
    guard let text else { return "" }
    return "<p class=\"message\" role=\"status\">\(HTMLPage.escape(text))</p>\n"
  }

  // Text has a contrast of at least 4.5 to 1 against its background, edges of fields one of 3 to 1
  // (WCAG 2.2, 1.4.3 and 1.4.11), in both color schemes.
  private static let style = """
    :root{color-scheme:light dark;--ink:#1d2733;--quiet:#5c6b7a;--page:#eef3f7;--card:#fff;\
    --line:#c9d4de;--edge:#75869a;--deep:#0b6bcb}
    @media(prefers-color-scheme:dark){:root{--ink:#e8eef4;--quiet:#9fb0c0;--page:#10171e;\
    --card:#1a242e;--line:#3a4957;--edge:#6f8294;--deep:#4aa3ff}}
    *{box-sizing:border-box}
    body{margin:0;min-height:100vh;min-height:100dvh;display:grid;place-items:center;\
    background:var(--page);color:var(--ink);font:16px/1.5 system-ui,sans-serif}
    main{width:min(25rem,calc(100vw - 2rem));margin:1rem 0;padding:2rem;background:var(--card);\
    border-radius:1rem;box-shadow:0 1px 2px #0002,0 12px 40px #0001}
    main>:last-child{margin-bottom:0}
    @media(max-width:24rem){main{padding:1.25rem}}
    svg{display:block;width:1.375rem;fill:var(--deep)}
    h1{margin:.75rem 0 1rem;font-size:1.5rem;line-height:1.2;overflow-wrap:anywhere}
    h1+.quiet{margin-top:-.75rem}
    h2{margin:2rem 0 .5rem;font-size:1.125rem;line-height:1.3;overflow-wrap:anywhere}
    p{margin:.5rem 0;overflow-wrap:anywhere}
    a{color:var(--deep)}
    .quiet{margin:.25rem 0 1.25rem;color:var(--quiet)}
    .message{margin:0 0 1.25rem;padding:.6rem .8rem;background:var(--page);\
    border-inline-start:.25rem solid var(--quiet)}
    .done{border-color:var(--deep)}
    form{display:grid;gap:1rem}
    form>p{margin:0}
    form+form{margin-top:1.25rem}
    form+.quiet{margin-top:1.25rem}
    label{display:grid;gap:.25rem;font-size:.875rem;color:var(--quiet)}
    .keep{display:flex;gap:.5rem;align-items:center;min-height:1.5rem}
    input:not([type=checkbox]):not([type=hidden]){width:100%;padding:.6rem .75rem;font:inherit;\
    font-size:1rem;color:var(--ink);background:transparent;border:1px solid var(--edge);\
    border-radius:.5rem}
    :focus-visible{outline:2px solid var(--deep);outline-offset:2px}
    button{padding:.7rem;font:inherit;font-weight:600;color:#fff;background:#0b6bcb;border:0;\
    border-radius:.5rem;cursor:pointer}
    .second{color:var(--ink);background:transparent;border:1px solid var(--edge)}
    details{margin-top:1.25rem;color:var(--quiet);font-size:.875rem}
    summary{cursor:pointer}
    code{font-size:.8125rem;overflow-wrap:anywhere}
    table{width:100%;margin-bottom:1rem;border-collapse:collapse;font-size:.875rem}
    th,td{padding:.5rem .5rem .5rem 0;text-align:start;border-bottom:1px solid var(--line)}
    """
}
