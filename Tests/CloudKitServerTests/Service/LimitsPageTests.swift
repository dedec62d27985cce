import Foundation
import Testing

@testable import CloudKitServer

/// Compares the page of limits with `ServiceLimits`.
@Suite("The page of limits")
struct LimitsPageTests {
  private static let page = TestPackage.root.appendingPathComponent("Documentation/Limits.md")
  private static let source = TestPackage.root.appendingPathComponent(
    "Sources/CloudKitServer/Service/ServiceLimits.swift"
  )

  private struct Limit {
    var name: String
    var meaning: String
  }

  /// The properties with their doc comments, in the order of the source.
  private func limits() throws -> [Limit] {
    var found: [Limit] = []
    var comment: [String] = []
    for line in try String(contentsOf: Self.source, encoding: .utf8).split(separator: "\n") {
      let text = line.trimmingCharacters(in: .whitespaces)
      if text.hasPrefix("///") {
        comment.append(text.dropFirst(3).trimmingCharacters(in: .whitespaces))
      } else if let match = text.wholeMatch(of: /package var (\w+).*/) {
        let meaning = comment.filter { !$0.isEmpty }.joined(separator: " ")
        found.append(Limit(name: String(match.1), meaning: meaning))
        comment = []
      } else {
        comment = []
      }
    }
    return found
  }

  private func text(_ value: Any) -> String {
    switch value {
    case let number as Int: grouped(number)
    case let number as Int64: grouped(Int(number))
    case let number as Double:
      number == number.rounded() ? grouped(Int(number)) : "\(number)"
    case let rule as PasswordRule: "\(grouped(rule.shortest)) to \(grouped(rule.longest))"
    default: "none"
    }
  }

  private func grouped(_ number: Int) -> String {
    var digits = String(number.magnitude)
    var groups: [String] = []
    while digits.count > 3 {
      groups.insert(String(digits.suffix(3)), at: 0)
      digits.removeLast(3)
    }
    return (number < 0 ? "-" : "") + ([digits] + groups).joined(separator: ",")
  }

  private func expectedPage() throws -> String {
    let values = Mirror(reflecting: ServiceLimits()).children.map { ($0.label ?? "", $0.value) }
    let limits = try limits()
    #expect(limits.map(\.name) == values.map(\.0))
    let rows = zip(limits, values).map { limit, value in
      "| `\(limit.name)` | \(text(value.1)) | \(limit.meaning) |"
    }
    return """
      # Limits

      What the server bounds, and its defaults. This page is made of `ServiceLimits`
      (`make limits`); a test holds it to the source. A limit that is reached is answered with a
      documented error: BAD_REQUEST with the extension code LIMIT_EXCEEDED where the client has to ask
      for less, THROTTLED or TRY_AGAIN_LATER with the seconds to wait where it has to ask later,
      QUOTA_EXCEEDED where something has to be deleted first.

      `watershed serve` sets four of these itself (`requestsPerSecond`, `requestBurst`, `userQuota`,
      `publicQuota`): their defaults are in [Configuration](Operating/Configuration.md), as `rateLimit`,
      `rateBurst`, `userQuota` and `publicQuota`.

      | Limit | Default | Meaning |
      |---|---|---|
      \(rows.joined(separator: "\n"))

      """
  }

  @Test("The page has every limit with its default and its meaning")
  func page() throws {
    let expected = try expectedPage()
    if ProcessInfo.processInfo.environment["WATERSHED_WRITE_LIMITS"] != nil {
      try Data(expected.utf8).write(to: Self.page)
    }
    let found = try String(contentsOf: Self.page, encoding: .utf8)
    #expect(found == expected, "run make limits")
  }

  @Test("Every limit has a description")
  func meanings() throws {
    for limit in try limits() { #expect(!limit.meaning.isEmpty, "\(limit.name)") }
  }
}
