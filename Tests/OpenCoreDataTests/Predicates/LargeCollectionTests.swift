import Foundation
import OpenCoreData
import Testing

@Suite("Large collections are compared by value, like small ones")
struct LargeCollectionTests {
  /// Evaluates membership in a large list, whose members are hashed, and in a small one.
  private func isMember(_ value: Any, of members: [Any]) -> (large: Bool, small: Bool) {
    let object = ["x": value] as NSDictionary
    let filler: [Any] = (0..<40).map { "filler \($0)" }
    let large = NSPredicate(format: "x IN %@", filler + members)
    let small = NSPredicate(format: "x IN %@", members)
    return (large.evaluate(with: object), small.evaluate(with: object))
  }

  @Test("A large list and a small one have the same members of every type")
  func membership() {
    let values: [Any] = [
      0, -0.0, 1, 1.0, Decimal(1), 0.1, Decimal(string: "0.1") ?? 0, Int64.max, 0x1p63,
      9_007_199_254_740_993, 9_007_199_254_740_992.0, Decimal(9_007_199_254_740_993), "1", "é",
      "e\u{301}", "", URL(fileURLWithPath: "/a"), "file:///a",
      Date(timeIntervalSinceReferenceDate: 0), Data([1]), Data(), UUID(), true,
      Decimal(string: "123456789.123456789") ?? 0,
      123_456_789.123456789, NSNull(),
    ]
    for value in values {
      for member in values {
        let found = isMember(value, of: [member])
        #expect(found.large == found.small, "\(value) IN [\(member)]")
      }
    }
  }

  @Test("Distinct values keep their order, and equal numbers of different types are one")
  func distinct() {
    let values: [Any] = [3, 1, 3.0, Decimal(1), "a", "b", "a", 2]
    let expression = NSExpression(format: "distinct:(%@)", values)
    let found = expression.expressionValue(with: nil, context: nil) as? [Any]
    #expect(found?.map { "\($0)" } == ["3", "1", "a", "b", "2"])
  }

  @Test("Collections with the same members in any order, each equally often, are equal")
  func equality() {
    func areEqual(_ left: [Any], _ right: [Any]) -> Bool {
      NSPredicate(format: "%@ == %@", left, right).evaluate(with: nil)
    }
    #expect(areEqual([1, 2, 2.0, "x"], ["x", 2, Decimal(2), 1]))
    #expect(!areEqual([1, 2, 2], [1, 1, 2]))
    #expect(!areEqual([1], [1, 1]))
  }
}
