import CloudKitWebServices
import Foundation

/// The path and query of a request, parsed.
package struct RequestTarget: Sendable {
  var path: String
  var parts: [String]
  var query: [String: String]

  package init(_ text: String) {
    let halves = text.split(ascii: "?", maxSplits: 1, omittingEmptySubsequences: false)
    path = halves.first.map(String.init) ?? ""
    parts = path.split(ascii: "/").map { Self.unescape($0) }
    query = halves.count > 1 ? Self.form(String(halves[1])) : [:]
  }

  var first: String { parts.first ?? "" }

  /// The limit of items in a query or a form; our pages have ten, and no client's query has more
  /// than twenty.
  static let itemLimit = 100

  /// Parses `a=b&c=d` as in queries and HTML forms; of equal names the first is used, and items
  /// beyond the limit are ignored.
  ///
  /// No item of ours has a long name, and a value with a long run of combining marks would be slow to
  /// compare: these are ignored too, unless the marks are escaped, which then stay so.
  static func form(_ text: String, plusIsSpace: Bool = false) -> [String: String] {
    var items: [String: String] = [:]
    for item in text.split(ascii: "&", maxSplits: itemLimit).prefix(itemLimit) {
      let halves = item.split(ascii: "=", maxSplits: 1, omittingEmptySubsequences: false)
      let value = halves.count > 1 ? halves[1] : ""
      let name = unescape(halves[0])
      guard name.utf8.count <= nameLimit, items[name] == nil else { continue }
      let text = plusIsSpace ? unescape(withSpaces(value)) : unescape(value)
      if !CombiningMarks.areTooMany(in: text) { items[name] = text }
    }
    return items
  }

  /// Bytes of an item's name.
  private static let nameLimit = 64

  /// The text with a space for each plus, of which a form's text has none but as spaces.
  private static func withSpaces(_ text: Substring) -> String {
    String(
      decoding: text.utf8.map { $0 == UInt8(ascii: "+") ? UInt8(ascii: " ") : $0 },
      as: UTF8.self
    )
  }

  private static func unescape(_ text: some StringProtocol) -> String {
    // Most parts have no escapes, and Foundation copies each of them twice.
    guard text.utf8.contains(UInt8(ascii: "%")) else { return String(text) }
    // A text with too many combining marks stays as it was sent: no name has such an escape.
    guard let plain = text.removingPercentEncoding, !CombiningMarks.areTooMany(in: plain) else {
      return String(text)
    }
    return plain
  }
}
