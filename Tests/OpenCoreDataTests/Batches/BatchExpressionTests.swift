import Foundation
import OpenCoreData
import Testing

/// Values that an expression gives in some rows and that the attribute cannot have.
@Suite("Batch updates by expressions")
struct BatchExpressionTests {
  private let bench: MigrationBench
  private let model: NSManagedObjectModel

  init() throws {
    bench = try MigrationBench()
    let required = { (attribute: NSAttributeDescription) in
      attribute.isOptional = false
      attribute.defaultValue = 0
    }
    model = MigrationBench.model(
      ModelParts.entity(
        "Score",
        [
          ModelParts.number("rank", required),
          ModelParts.attribute("average", .doubleAttributeType, required),
          ModelParts.number("draftRank") { $0.isOptional = true },
          ModelParts.number("uses") { $0.isOptional = true },
          ModelParts.attribute("level", .integer16AttributeType) { $0.isOptional = true },
          ModelParts.attribute("width", .integer32AttributeType) { $0.isOptional = true },
          ModelParts.attribute("isUsed", .booleanAttributeType) { $0.isOptional = true },
        ]
      )
    )
  }

  private func update(
    _ context: NSManagedObjectContext,
    _ properties: [String: String]
  ) throws {
    let request = NSBatchUpdateRequest(entityName: "Score")
    request.propertiesToUpdate = properties.mapValues { NSExpression(format: $0) }
    try context.execute(request)
  }

  /// The code and attribute of the error of an update; the rows stay as they are.
  private func refusal(_ key: String, _ expression: String) throws -> (Int, String?) {
    try bench.open(model) { context in
      func values() throws -> [NSNumber?] {
        try context.all("Score", by: "rank").map { $0.value(forKey: key) as? NSNumber }
      }
      let before = try values()
      let error = try #require(throws: NSError.self) { try update(context, [key: expression]) }
      context.reset()
      #expect(try values() == before)
      return (error.code, error.userInfo[NSValidationKeyErrorKey] as? String)
    }
  }

  private func fill() throws {
    try bench.open(model) { context in
      _ = context.insert("Score", ["rank": 1, "draftRank": 5, "uses": 2, "level": 7])
      _ = context.insert(
        "Score",
        ["rank": 2, "uses": 0, "level": Int16.max, "width": Int32.min]
      )
    }
  }

  @Test("An expression without a value in one row does not clear a required attribute")
  func missingValue() throws {
    try fill()
    #expect(try refusal("rank", "draftRank") == (NSValidationMissingMandatoryPropertyError, "rank"))
    let divided = try refusal("average", "rank / uses")
    #expect(divided == (NSValidationMissingMandatoryPropertyError, "average"))
  }

  @Test("A number that the attribute's type does not have is refused")
  func widths() throws {
    try fill()
    #expect(try refusal("level", "level + 1") == (NSValidationNumberTooLargeError, "level"))
    #expect(try refusal("width", "width - 1") == (NSValidationNumberTooSmallError, "width"))
    let large = try refusal("rank", "rank * 9000000000000000000.0")
    #expect(large == (NSValidationNumberTooLargeError, "rank"))
  }

  @Test("Numbers at the bounds, nil and truth values are stored")
  func fittingValues() throws {
    try fill()
    try bench.open(model) { context in
      try update(
        context,
        ["level": "level + 0.75", "draftRank": "draftRank / uses", "isUsed": "uses * 3"]
      )
      let scores = try context.all("Score", by: "rank")
      #expect(scores.map { $0.value(forKey: "level") as? Int } == [7, 32_767])
      #expect(scores.map { $0.value(forKey: "draftRank") as? Int } == [2, nil])
      #expect(scores.map { $0.value(forKey: "isUsed") as? Bool } == [true, false])
      let used = NSFetchRequest<NSManagedObject>(entityName: "Score")
      used.predicate = NSPredicate(format: "isUsed == YES")
      #expect(try context.count(for: used) == 1)
    }
  }
}
