import Foundation
import OpenCoreData
import Testing
import WatershedSQLite

@Suite(
  "Our schema for a model equals Apple's",
  .enabled(if: Corpus.isPresent, "the corpus is not here: see WATERSHED_SHARED")
)
struct SchemaCorpusTests {
  /// Differences that no rule explains, by store.
  private static let exceptions: [String: Set<String>] = [
    // A migration in place left an entity with its former name.
    "alemar11__CoreDataPlus__SampleModel_V2.sqlite": ["numbers"],
    // The app itself creates the indexes with the numbers of bug reports, and drops one.
    "RhetTbull__PhotoScript__Photos.sqlite.aside": [
      "+ CREATE INDEX ZGENERICASSET_Z_ENT_INDEX ON ZGENERICASSET (Z_ENT)",
      "- CREATE INDEX RADAR_10322662_INDEX ON Z_26ASSETS (Z_26ALBUMS, Z_34ASSETS, Z_FOK_34ASSETS)",
      "- CREATE INDEX RADAR_22158684_INDEX ON Z_26ASSETS (Z_26ALBUMS, Z_FOK_34ASSETS, Z_34ASSETS)",
      "- CREATE UNIQUE INDEX RADAR_45737537_UNIQUE_INDEX ON ZINTERNALRESOURCE (ZASSET, "
        + "ZRESOURCETYPE, ZVERSION, ZRECIPEID, ZUNIFORMTYPEIDENTIFIER)",
    ],
  ]

  /// The names and definitions of a file's tables.
  private struct Shape {
    var numbers: [String]
    var columns: [String: Set<String>]
    var indexes: Set<String>
    var triggers: Set<String>

    init(_ url: URL) throws {
      let connection = try SQLiteConnection(path: url.path, mode: .readOnly)
      numbers = try connection.query(
        "SELECT Z_ENT, Z_NAME, Z_SUPER FROM Z_PRIMARYKEY WHERE Z_ENT < 16000 ORDER BY Z_ENT"
      ) { "\($0.int64(0)) \($0.text(1)) < \($0.int64(2))" }
      columns = [:]
      let all = try connection.query(
        """
        SELECT m.name, c.name, c.type FROM sqlite_master AS m, pragma_table_info(m.name) AS c
        WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%' AND m.name NOT LIKE 'Z_RT_%'
        """
      ) { ($0.text(0), "\($0.text(1)) \($0.text(2))") }
      for (table, column) in all { columns[table, default: []].insert(column) }
      indexes = Set(
        try connection.query("SELECT sql FROM sqlite_master WHERE type = 'index' AND sql NOTNULL") {
          $0.text(0).replacingOccurrences(of: "\"", with: "")
            .replacingOccurrences(of: "WHERE  ", with: "WHERE ")
        }
      )
      triggers = Set(
        try connection.query("SELECT sql FROM sqlite_master WHERE type = 'trigger'") { $0.text(0) }
      )
    }
  }

  @Test("Numbers, tables, columns and indexes are the same", arguments: Corpus.storeNames)
  func sameShape(name: String) throws {
    let folder = try ScratchFolder()
    let original = try Corpus.copyStore(name, to: folder.url)
    guard let model = try? SQLiteStore.model(inStoreAt: original) else { return }
    let apples = try Shape(original)
    let hasHistory = apples.columns["ACHANGE"] != nil
    let url = folder.file("ours.sqlite")
    let store = try SQLiteStore(
      model: model,
      url: url,
      options: hasHistory ? [NSPersistentHistoryTrackingKey: true] : [:]
    )
    store.close()
    let ours = try Shape(url)
    var differences: [String] = []
    if ours.numbers != apples.numbers { differences.append("numbers") }
    for table in Set(ours.columns.keys).union(apples.columns.keys).sorted() {
      let (here, there) = (ours.columns[table] ?? [], apples.columns[table] ?? [])
      for column in here.subtracting(there).sorted() { differences.append("+ \(table).\(column)") }
      for column in there.subtracting(here).sorted() { differences.append("- \(table).\(column)") }
    }
    for index in ours.indexes.subtracting(apples.indexes).sorted() {
      differences.append("+ \(index)")
    }
    for index in apples.indexes.subtracting(ours.indexes).sorted() {
      differences.append("- \(index)")
    }
    for trigger in ours.triggers.symmetricDifference(apples.triggers).sorted()
    where trigger.contains("Z_DA_") {
      differences.append("± \(trigger)")
    }
    let known = Self.exceptions[name] ?? []
    #expect(differences.filter { !known.contains($0) } == [], "\(name)")
  }
}
