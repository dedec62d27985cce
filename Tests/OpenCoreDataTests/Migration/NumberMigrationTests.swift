import Foundation
import OpenCoreData
import Testing
import WatershedSQLite

@Suite("Lightweight migration between types of attributes")
struct NumberMigrationTests {
  private typealias Parts = ModelParts

  static let numbers: [NSAttributeType] = [
    .integer16AttributeType, .integer32AttributeType, .integer64AttributeType,
    .booleanAttributeType,
    .floatAttributeType, .doubleAttributeType,
  ]
  static let others: [NSAttributeType] = [
    .decimalAttributeType, .stringAttributeType, .dateAttributeType, .binaryDataAttributeType,
    .UUIDAttributeType, .URIAttributeType, .transformableAttributeType,
  ]

  private static func model(_ type: NSAttributeType) -> NSManagedObjectModel {
    MigrationBench.model(
      Parts.entity("Post", [Parts.text("title"), Parts.attribute("stars", type)])
    )
  }

  @Test(
    "A mapping is inferred between numbers and from each type to itself, and for no other types",
    arguments: numbers + others
  )
  func table(before: NSAttributeType) throws {
    for after in Self.numbers + Self.others {
      let isPossible =
        before == after || Self.numbers.contains(before) && Self.numbers.contains(after)
      let mapping = try? NSMappingModel.inferredMappingModel(
        forSourceModel: Self.model(before),
        destinationModel: Self.model(after)
      )
      #expect((mapping != nil) == isPossible, "\(before) to \(after)")
    }
  }

  /// Numbers, and the types that represent them exactly.
  private static let values: [(value: Double, types: [NSAttributeType])] = [
    (0, numbers), (1, numbers), (-1, numbers.filter { $0 != .booleanAttributeType }),
    (300, numbers.filter { $0 != .booleanAttributeType }),
    (70_000, numbers.filter { ![.booleanAttributeType, .integer16AttributeType].contains($0) }),
    (
      16_777_217, [.integer32AttributeType, .integer64AttributeType, .doubleAttributeType]
    ),
    (
      4_294_967_296, [.integer64AttributeType, .doubleAttributeType, .floatAttributeType]
    ),
    (0.5, [.floatAttributeType, .doubleAttributeType]),
  ]

  @Test(
    "A number is kept exactly in another type, or the store is refused and unchanged",
    arguments: numbers,
    numbers
  )
  func values(before: NSAttributeType, after: NSAttributeType) throws {
    for (value, types) in Self.values where types.contains(before) {
      // A Float accepts any Double of its range, rounded.
      let fits =
        types.contains(after)
        || before == .doubleAttributeType && value == 16_777_217
          && after == .floatAttributeType
      let bench = try MigrationBench()
      try bench.open(Self.model(before)) { context in
        _ = context.insert("Post", ["title": "a", "stars": NSNumber(value: value)])
        _ = context.insert("Post", ["title": "b"])
      }
      let untouched = try bench.dump()
      guard fits else {
        let error = bench.refusal(Self.model(after))
        #expect(error?.code == NSMigrationError, "\(before) to \(after): \(value)")
        #expect(try bench.dump() == untouched)
        continue
      }
      try bench.open(Self.model(after)) { context in
        let posts = try context.all("Post", by: "title")
        let found = posts.map { ($0.value(forKey: "stars") as? NSNumber)?.doubleValue }
        let kept = after == .floatAttributeType ? Double(Float(value)) : value
        #expect(found == [kept, nil], "\(before) to \(after)")
      }
      try bench.open(Self.model(after), [:]) { _ in }
    }
  }

  @Test("Whole numbers that a Double cannot represent are refused")
  func largeNumbers() throws {
    for value in [Int64.max, 9_007_199_254_740_993] {
      let bench = try MigrationBench()
      try bench.open(Self.model(.integer64AttributeType)) { context in
        _ = context.insert("Post", ["stars": NSNumber(value: value)])
      }
      #expect(bench.refusal(Self.model(.doubleAttributeType))?.code == NSMigrationError)
      try bench.open(Self.model(.integer64AttributeType)) { context in
        let stars = try context.all("Post").first?.value(forKey: "stars") as? NSNumber
        #expect(stars?.int64Value == value)
      }
    }
  }

  @Test("A nil number gets the default if the attribute becomes required")
  func required() throws {
    let bench = try MigrationBench()
    try bench.open(Self.model(.integer16AttributeType)) { _ = $0.insert("Post") }
    let after = Self.model(.doubleAttributeType)
    let stars = try #require(after.entitiesByName["Post"]?.attributesByName["stars"])
    stars.isOptional = false
    stars.defaultValue = 2.5
    try bench.open(after) { context in
      let found = try context.all("Post").first?.value(forKey: "stars") as? NSNumber
      #expect(found?.doubleValue == 2.5)
    }
  }

  @Test("A binary store refuses a number that does not fit, and is unchanged")
  func binary() throws {
    let folder = try ScratchFolder()
    let url = folder.file("posts.binary")
    func open(_ type: NSAttributeType) throws -> NSManagedObjectContext {
      let coordinator = NSPersistentStoreCoordinator(managedObjectModel: Self.model(type))
      try coordinator.addPersistentStore(
        ofType: NSBinaryStoreType,
        configurationName: nil,
        at: url,
        options: MigrationBench.lightweight
      )
      let context = NSManagedObjectContext(.privateQueue)
      context.persistentStoreCoordinator = coordinator
      return context
    }
    let context = try open(.integer64AttributeType)
    try context.performAndWait {
      _ = context.insert("Post", ["stars": 70_000])
      try context.save()
    }
    let bytes = try Data(contentsOf: url)
    #expect(throws: (any Error).self) { try open(.integer16AttributeType) }
    #expect(try Data(contentsOf: url) == bytes)
    let wide = try open(.integer32AttributeType)
    try wide.performAndWait {
      let found = try wide.all("Post").first?.value(forKey: "stars") as? NSNumber
      #expect(found?.intValue == 70_000)
    }
  }
}
