import Foundation
import OpenCoreData
import Testing

/// Models in Apple's archives, which have predicates as objects and not as text.
@Suite("Predicates of compiled models")
struct ArchivedPredicateTests {
  private var builder = KeyedArchiveBuilder()

  /// A model with lists of items, and one fetch request for lists with a predicate.
  private mutating func model(_ predicate: ArchiveValue) throws -> NSManagedObjectModel {
    let model = builder.reserve()
    let template = builder.object(
      class: ["NSFetchRequest"],
      [("NSEntityName", builder.string("List")), ("NSPredicate", predicate)]
    )
    let templates = builder.dictionary([(builder.string("expired"), template)])
    let entity = builder.object(
      class: ["NSEntityDescription"],
      [("NSEntityName", builder.string("List"))]
    )
    let entities = builder.dictionary([(builder.string("List"), entity)])
    builder.fill(
      model,
      class: ["NSManagedObjectModel"],
      [("NSEntities", entities), ("NSFetchRequestTemplates", templates)]
    )
    return try ModelArchive.model(fromArchive: builder.data(root: model), file: "Lists.mom")
  }

  private mutating func keyPath(_ operand: ArchiveValue, _ path: String) -> ArchiveValue {
    let specifier = builder.object(
      class: ["NSKeyPathSpecifierExpression"],
      [("NSKeyPath", builder.string(path))]
    )
    return builder.object(
      class: ["NSKeyPathExpression"],
      [
        ("NSOperand", operand), ("NSSelectorName", builder.string("valueForKeyPath:")),
        ("NSArguments", builder.array([specifier])),
      ]
    )
  }

  private mutating func constant(_ number: Int64) -> ArchiveValue {
    let value = builder.plain(.integer(number))
    return builder.object(class: ["NSConstantValueExpression"], [("NSConstantValue", value)])
  }

  private mutating func variable(_ name: String) -> ArchiveValue {
    builder.object(
      class: ["NSVariableExpression"],
      [("NSVariable", builder.string(name))]
    )
  }

  private mutating func evaluatedObject() -> ArchiveValue {
    builder.object(class: ["NSSelfExpression"], [])
  }

  private mutating func equal(_ left: ArchiveValue, _ right: ArchiveValue) -> ArchiveValue {
    let operation = builder.object(
      class: ["NSEqualityPredicateOperator"],
      [("NSOperatorType", .integer(4))]
    )
    return builder.object(
      class: ["NSComparisonPredicate"],
      [
        ("NSLeftExpression", left), ("NSRightExpression", right),
        ("NSPredicateOperator", operation),
      ]
    )
  }

  private func predicate(_ model: NSManagedObjectModel) throws -> NSPredicate {
    try #require(model.fetchRequestTemplate(forName: "expired")?.predicate)
  }

  @Test("A subquery is read", arguments: [true, false])
  mutating func subquery(variableIsText: Bool) throws {
    let done = equal(keyPath(variable("i"), "done"), constant(0))
    let subquery = builder.object(
      class: ["NSSubqueryExpression"],
      [
        ("NSCollection", keyPath(evaluatedObject(), "items")),
        ("NSVariable", variableIsText ? builder.string("i") : variable("i")),
        ("NSPredicate", done),
      ]
    )
    let model = try model(equal(keyPath(subquery, "@count"), constant(0)))
    #expect(
      try predicate(model)
        == NSPredicate(format: "SUBQUERY(items, $i, $i.done == 0).@count == 0")
    )
  }

  @Test("A conditional expression is read")
  mutating func conditional() throws {
    let ternary = builder.object(
      class: ["NSTernaryExpression"],
      [
        ("NSPredicate", equal(keyPath(evaluatedObject(), "a"), constant(1))),
        ("NSTrueExpression", constant(2)), ("NSFalseExpression", keyPath(evaluatedObject(), "b")),
      ]
    )
    let model = try model(equal(ternary, constant(3)))
    #expect(try predicate(model) == NSPredicate(format: "TERNARY(a == 1, 2, b) == 3"))
  }

  @Test("A request whose predicate cannot be read matches no object")
  mutating func unreadable() throws {
    let unknown = builder.object(class: ["NSLaterExpression"], [])
    let model = try model(equal(unknown, constant(0)))
    #expect(try predicate(model) == NSPredicate(value: false))
  }

  @Test("A request without a predicate matches every object")
  mutating func none() throws {
    let model = try model(KeyedArchiveBuilder.null)
    #expect(model.fetchRequestTemplate(forName: "expired")?.predicate == nil)
  }
}
