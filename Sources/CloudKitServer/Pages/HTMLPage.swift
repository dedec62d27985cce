import CloudKitWebServices
import Foundation

/// A page for users: its frame, and the headers that prevent scripts, framing and caching.
///
/// The code that writes the body must ``escape(_:)`` all user input.
package struct HTMLPage {
  package var title: String
  /// The contents of `main`.
  package var body: String
  package var style: String
  /// The nonce of the page's only script; nil if it has none.
  package var nonce: String?
  /// Whether search engines may list the page.
  package var isListed = true
  /// Whether its forms may only be sent to this server.
  ///
  /// Browsers also apply this to redirects after a form, and an issuer's page may be one.
  package var keepsForms = false

  package init(title: String, body: String, style: String) {
    self.title = title
    self.body = body
    self.style = style
  }

  /// Browsers that opened a page over HTTPS use only HTTPS for this host, for a year.
  package static let transportSecurity = "max-age=31536000"

  private var html: String {
    """
    <!DOCTYPE html>
    <html lang="en">
    <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    \(isListed ? "" : "<meta name=\"robots\" content=\"noindex\">\n")\
    <title>\(Self.escape(title))</title>
    <style>\(style)</style>
    </head>
    <body>
    <main>
    \(body)
    </main>
    </body>
    </html>

    """
  }

  package func response(status: Int = 200) -> WebServiceResponse {
    let scripts = nonce.map { " script-src 'nonce-\($0)';" } ?? ""
    let forms = keepsForms ? " form-action 'self';" : ""
    return WebServiceResponse(
      status: status,
      headers: [
        WebServiceName.contentType: "text/html; charset=UTF-8",
        "cache-control": "no-store",
        "content-security-policy":
          "default-src 'none'; style-src 'unsafe-inline';\(scripts)\(forms) base-uri 'none'; "
          + "frame-ancestors 'none'",
        // Nothing for other sites; with `no-referrer` a form of our own would have the origin `null`.
        "referrer-policy": "same-origin",
        "x-frame-options": "DENY",
        "x-content-type-options": "nosniff",
        "cross-origin-resource-policy": "same-origin",
        "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
      ],
      body: Data(html.utf8)
    )
  }

  /// Escapes a text for elements and quoted attributes, of HTML and of XML.
  ///
  /// Signs are found by scalars, as browsers read them: `replacing` compares `Character`s, and does not find a sign that the next or the
  /// previous scalar is joined to.
  package static func escape(_ text: String) -> String {
    var escaped = String.UnicodeScalarView()
    for scalar in text.unicodeScalars {
      switch scalar {
      case "&": escaped.append(contentsOf: "&amp;".unicodeScalars)
      case "<": escaped.append(contentsOf: "&lt;".unicodeScalars)
      case ">": escaped.append(contentsOf: "&gt;".unicodeScalars)
      case "\"": escaped.append(contentsOf: "&quot;".unicodeScalars)
      case "'": escaped.append(contentsOf: "&#39;".unicodeScalars)
      default: escaped.append(scalar)
      }
    }
    return String(escaped)
  }
}
