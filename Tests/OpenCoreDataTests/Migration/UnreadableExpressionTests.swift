import Foundation
import OpenCoreData
import Testing

@Suite("Mapping models with expressions that cannot be read")
struct UnreadableExpressionTests {
  private static func model(_ name: String) -> NSManagedObjectModel {
    MigrationBench.model(ModelParts.entity("Note", [ModelParts.text(name)]))
  }

  /// A compiled mapping of notes whose title is the value of an expression of an unknown class.
  private static func archive() -> Data {
    var builder = KeyedArchiveBuilder()
    let unknown = builder.object(class: ["NSLaterExpression"], [])
    let title = builder.object(
      class: ["NSPropertyMapping"],
      [("NSDestinationPropertyName", builder.string("title")), ("NSValueExpression", unknown)]
    )
    let notes = builder.object(
      class: ["NSEntityMapping"],
      [
        ("NSMappingName", builder.string("NoteToNote")),
        ("NSSourceEntityName", builder.string("Note")),
        ("NSDestinationEntityName", builder.string("Note")),
        ("NSAttributeMappings", builder.array([title])),
      ]
    )
    let model = builder.reserve()
    let mappings = builder.array([notes])
    builder.fill(model, class: ["NSMappingModel"], [("NSEntityMappings", mappings)])
    return builder.data(root: model)
  }

  @Test("An expression of a compiled mapping model that cannot be read fails the migration")
  func failing() throws {
    let bench = try MigrationBench()
    try bench.open(Self.model("name")) { _ = $0.insert("Note", ["name": "Ada"]) }
    let file = bench.folder.file("Mapping.cdm")
    try Self.archive().write(to: file)
    let mapping = try #require(NSMappingModel(contentsOf: file))
    let manager = NSMigrationManager(
      sourceModel: Self.model("name"),
      destinationModel: Self.model("title")
    )
    let target = bench.folder.file("New.sqlite")
    let error = #expect(throws: NSError.self) {
      try manager.migrateStore(
        from: bench.url,
        type: .sqlite,
        mapping: mapping,
        to: target,
        type: .sqlite
      )
    }
    #expect(error?.code == NSEntityMigrationPolicyError)
    let reason = error?.userInfo["reason"] as? String
    #expect(reason?.contains("'NoteToNote' has an archived NSLaterExpression") == true)
    #expect(!FileManager.default.fileExists(atPath: target.path))
  }
}
