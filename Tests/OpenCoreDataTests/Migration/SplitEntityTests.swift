import Effects
import Foundation
import Testing
import WatershedSQLite

@testable import OpenCoreData

/// Makes one author for all notes with the same one, and associates it with each of them.
final class SharedAuthorPolicy: NSEntityMigrationPolicy {
  override func createDestinationInstances(
    forSource sInstance: NSManagedObject,
    in mapping: NSEntityMapping,
    manager: NSMigrationManager
  ) throws {
    let made = manager.destinationInstances(
      forEntityMappingName: mapping.name ?? "",
      sourceInstances: nil
    )
    let name = sInstance.value(forKey: "author") as? String
    let author =
      made.first { $0.value(forKey: "name") as? String == name }
      ?? NSEntityDescription.insertNewObject(
        forEntityName: "Author",
        into: manager.destinationContext
      )
    author.setValue(name, forKey: "name")
    manager.associate(sourceInstance: sInstance, withDestinationInstance: author, for: mapping)
  }
}

@Suite("A mapping model that makes two objects of one")
struct SplitEntityTests {
  private typealias Parts = ModelParts

  private static func older() -> NSManagedObjectModel {
    MigrationBench.model(Parts.entity("Note", [Parts.text("title"), Parts.text("author")]))
  }

  /// The author has become an entity; it sorts before the notes, and so does its mapping.
  private static func newer(_ note: String) -> NSManagedObjectModel {
    let entity = Parts.entity(note, [Parts.text("title")])
    if note != "Note" { entity.renamingIdentifier = "Note" }
    return MigrationBench.model(Parts.entity("Author", [Parts.text("name")]), entity)
  }

  private static func mapping(_ note: String, _ policy: AnyClass?) -> NSMappingModel {
    func entity(_ name: String, _ property: String, _ source: String) -> NSEntityMapping {
      let entity = NSEntityMapping()
      entity.name = "NoteTo\(name)"
      entity.mappingType = .customEntityMappingType
      entity.sourceEntityName = "Note"
      entity.destinationEntityName = name
      let value = NSPropertyMapping()
      value.name = property
      value.valueExpression = NSExpression(format: "$source.\(source)")
      entity.attributeMappings = [value]
      return entity
    }
    let authors = entity("Author", "name", "author")
    authors.entityMigrationPolicyClassName = policy.map { NSStringFromClass($0) }
    let mapping = NSMappingModel()
    mapping.entityMappings = [authors, entity(note, "title", "title")]
    return mapping
  }

  @Test(
    "The mirroring's records and the history stay with the object that continues the former one",
    arguments: [false, true],
    ["Note", "Paper"]
  )
  func records(isShared: Bool, note: String) throws {
    let bench = try MigrationBench()
    let history: [AnyHashable: Any] = [NSPersistentHistoryTrackingKey: true as NSNumber]
    try bench.open(Self.older(), history) { context in
      for title in ["a", "b", "c"] {
        _ = context.insert("Note", ["title": title, "author": isShared ? "Ada" : title])
      }
      try context.save()
      // Leaves a gap in the keys, so that rows get other ones.
      context.delete(try #require(try context.all("Note", by: "title").first))
    }
    try bench.connect().execute(
      """
      CREATE TABLE WSMIRROR_RECORD (ID INTEGER PRIMARY KEY, NAME TEXT, ENTITY TEXT, PK INTEGER);
      CREATE UNIQUE INDEX WSMIRROR_RECORD_OBJECT ON WSMIRROR_RECORD (ENTITY, PK);
      INSERT INTO WSMIRROR_RECORD SELECT NULL, 'r-' || ZTITLE, 'Note', Z_PK FROM ZNOTE;
      """
    )
    try MappedStoreMigration(
      source: Self.older(),
      mapping: Self.mapping(note, isShared ? SharedAuthorPolicy.self : nil),
      migration: StoreMigration(
        model: Self.newer(note),
        configuration: nil,
        url: bench.url,
        options: MigrationBench.lightweight,
        effects: .live
      )
    )
    .run()
    let connection = try bench.connect()
    let records = try connection.query(
      """
      SELECT NAME || ' ' || ENTITY || ' ' || ZTITLE FROM WSMIRROR_RECORD \
      JOIN Z\(note.uppercased()) ON Z_PK = PK ORDER BY 1
      """
    ) { $0.text(0) }
    #expect(records == ["r-b \(note) b", "r-c \(note) c"])
    let changed = try connection.query(
      "SELECT DISTINCT p.Z_NAME FROM ACHANGE JOIN Z_PRIMARYKEY AS p ON p.Z_ENT = ZENTITY"
    ) { $0.text(0) }
    #expect(changed == [note])
    let authors = try connection.scalar("SELECT COUNT(*) FROM ZAUTHOR")
    #expect(authors == .integer(isShared ? 1 : 2))
  }
}
