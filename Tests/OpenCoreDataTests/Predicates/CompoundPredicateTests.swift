import Foundation
import OpenCoreData
import Testing

@Suite("Compound predicates that Foundation's initializers make")
struct CompoundPredicateTests {
  private let first = NSPredicate(format: "ANY tags.name == 'a'")
  private let second = NSPredicate(format: "rank > 2")

  @Test("A compound predicate's format joins its subpredicates' formats")
  func format() {
    let both = NSCompoundPredicate(andPredicateWithSubpredicates: [first, second])
    #expect(both.description == #"ANY tags.name == "a" AND rank > 2"#)
    #expect((both as NSPredicate).formatString == both.description)
    #expect(
      NSCompoundPredicate(orPredicateWithSubpredicates: [both, second]).description
        == #"(ANY tags.name == "a" AND rank > 2) OR rank > 2"#
    )
    #expect(NSCompoundPredicate(notPredicateWithSubpredicate: second).description == "NOT rank > 2")
  }

  @Test("Compound predicates with equal subpredicates are equal, to parsed ones too")
  func equality() {
    let both = NSCompoundPredicate(type: .and, subpredicates: [first, second])
    let same = NSCompoundPredicate(andPredicateWithSubpredicates: [first, second])
    #expect(both == same)
    #expect(both.hash == same.hash)
    #expect(both != NSCompoundPredicate(type: .or, subpredicates: [first, second]))
    #expect(both != NSCompoundPredicate(type: .and, subpredicates: [second, first]))
    let parsed = NSPredicate(format: "ANY tags.name == 'a' AND rank > 2")
    #expect(both == parsed)
    #expect(parsed == both)
    #expect(both.hash == parsed.hash)
    #expect(both != first)
  }

  @Test("A copy has the same parts")
  func copies() throws {
    let either = NSCompoundPredicate(type: .or, subpredicates: [second, NSPredicate(value: false)])
    let copy = try #require(either.copy() as? NSPredicate)
    #expect(copy == either)
    #expect(copy.evaluate(with: NSDictionary(dictionary: ["rank": 3])))
    #expect(!copy.evaluate(with: NSDictionary(dictionary: ["rank": 1])))
  }

  @Test("A nil that a generic function passes is NSNull, and another nil is nil")
  func boxedNil() {
    func constant<Value>(_ value: Value) -> OpenCoreData.NSExpression {
      OpenCoreData.NSExpression(forConstantValue: value)
    }
    let title: String? = nil
    #expect(constant(title) == OpenCoreData.NSExpression(forConstantValue: NSNull()))
    #expect(constant(title).description == "<null>")
    #expect(constant(Optional("a")) == OpenCoreData.NSExpression(forConstantValue: "a"))
    #expect(OpenCoreData.NSExpression(forConstantValue: title).description == "nil")
  }

  @Test("A subclass keeps its own methods")
  func subclass() {
    final class Named: NSCompoundPredicate {
      override var description: String { "named" }
    }
    let named = Named(type: .and, subpredicates: [first, second])
    #expect(named.description == "named")
    #expect(named.compoundPredicateType == .and)
  }
}
