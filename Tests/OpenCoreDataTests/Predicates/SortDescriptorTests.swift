import Foundation
import OpenCoreData
import Testing

@Suite("Sorting by keys")
struct SortDescriptorTests {
  private func sorted(_ values: [Any?], _ descriptors: NSSortDescriptor...) -> [String] {
    values.map { ["title": $0 ?? NSNull()] as [String: Any] }
      .sorted(using: descriptors) { $0 }
      .map { "\($0["title"] ?? "")" }
      .map { $0 == "<null>" ? "nil" : $0 }
  }

  @Test("Nil is first in ascending order and last in descending order")
  func nilOrder() {
    let values: [Any?] = ["b", nil, "a"]
    #expect(sorted(values, NSSortDescriptor(key: "title", ascending: true)) == ["nil", "a", "b"])
    #expect(sorted(values, NSSortDescriptor(key: "title", ascending: false)) == ["b", "a", "nil"])
  }

  @Test("Without a selector strings are sorted by code point; with one by locale")
  func orderings() {
    let values: [Any?] = ["item 10", "Item 9", "éclair", "Zebra", "apple"]
    func order(_ ordering: SortOrdering) -> [String] {
      sorted(values, NSSortDescriptor(key: "title", ascending: true, ordering: ordering))
    }
    #expect(order(.literal) == ["Item 9", "Zebra", "apple", "item 10", "éclair"])
    #expect(order(.caseInsensitive) == ["apple", "item 10", "Item 9", "Zebra", "éclair"])
    #expect(order(.localized) == ["apple", "éclair", "item 10", "Item 9", "Zebra"])
    #expect(order(.localizedStandard) == ["apple", "éclair", "Item 9", "item 10", "Zebra"])
  }

  @Test("A descriptor has its key and compares objects, and its reverse reverses the order")
  func properties() throws {
    let descriptor = NSSortDescriptor(key: "title", ascending: true)
    #expect(descriptor.key == "title")
    #expect(descriptor.ascending)
    #expect(descriptor.compare(["title": 1], to: ["title": 2]) == .orderedAscending)
    let reversed = try #require(descriptor.reversedSortDescriptor as? NSSortDescriptor)
    #expect(reversed.compare(["title": 1], to: ["title": 2]) == .orderedDescending)
    #expect(descriptor == NSSortDescriptor(key: "title", ascending: true))
    #expect(descriptor != NSSortDescriptor(key: "title", ascending: false))
  }

  @Test("A custom comparator determines the order")
  func comparator() {
    let byLength = NSSortDescriptor(key: "title", ascending: true) { left, right in
      let (left, right) = ("\(left)".count, "\(right)".count)
      return left < right ? .orderedAscending : left == right ? .orderedSame : .orderedDescending
    }
    #expect(sorted(["ccc", "a", "bb"], byLength) == ["a", "bb", "ccc"])
  }

  @Test("Later descriptors order objects that are equal by earlier ones")
  func several() {
    let rows: [[String: Any]] = [["a": 1, "b": 1], ["a": 0, "b": 2], ["a": 1, "b": 0]]
    let order = [
      NSSortDescriptor(key: "a", ascending: false), NSSortDescriptor(key: "b", ascending: true),
    ]
    let sorted = rows.sorted(using: order) { $0 }
    #expect(sorted.map { $0["b"] as? Int } == [0, 1, 2])
  }
}
