import Effects
import Foundation
import OpenCoreData
import Testing
import WatershedSQLite

#if canImport(Glibc)
import Glibc
#endif

/// Crashes during its work.
final class DyingPolicy: NSEntityMigrationPolicy {
  override func endInstanceCreation(
    forMapping mapping: NSEntityMapping,
    manager: NSMigrationManager
  ) throws {
    raise(SIGKILL)
  }
}

@Suite("Migrations that are interrupted")
struct MigrationCrashTests {
  private typealias Parts = ModelParts

  private static let rowCount = 400

  /// Between the two versions tables are altered, rebuilt, renumbered and joined.
  private static func model(newer: Bool) -> NSManagedObjectModel {
    let post = Parts.entity(
      "Post",
      newer
        ? [
          Parts.attribute("headline", .stringAttributeType) { $0.renamingIdentifier = "title" },
          Parts.attribute("stars", .integer64AttributeType) { $0.defaultValue = 1 },
        ]
        : [
          Parts.attribute("title", .stringAttributeType),
          Parts.attribute("body", .stringAttributeType),
        ]
    )
    let tag = Parts.entity("Tag", [Parts.attribute("name", .stringAttributeType)])
    Parts.relate(post, "tags", toMany: true, tag, "posts", toMany: true)
    return newer
      ? MigrationBench.model(Parts.entity("Author"), post, tag) : MigrationBench.model(post, tag)
  }

  private func filled() throws -> MigrationBench {
    let bench = try MigrationBench()
    try bench.open(Self.model(newer: false)) { context in
      let tags = (0..<5).map { context.insert("Tag", ["name": "t\($0)"]) }
      for number in 0..<Self.rowCount {
        let body = String(repeating: "x", count: 200)
        _ = context.insert(
          "Post",
          ["title": "p\(number)", "body": body, "tags": NSSet(array: tags)]
        )
      }
    }
    return bench
  }

  private func requireNew(_ bench: MigrationBench) throws {
    try bench.open(Self.model(newer: true)) { context in
      let posts = try context.all("Post")
      #expect(posts.count == Self.rowCount)
      #expect(
        posts.allSatisfy { ($0.value(forKey: "headline") as? String)?.hasPrefix("p") == true }
      )
      #expect(posts.allSatisfy { ($0.value(forKey: "tags") as? NSSet)?.count == 5 })
    }
  }

  @Test(
    "A process that is killed after any step of a migration leaves the old store",
    arguments: 0..<11
  )
  func killed(step: Int) async throws {
    let bench = try filled()
    let before = try bench.dump()
    let path = bench.url.path
    await #expect(processExitsWith: .signal(SIGKILL)) {
      [path = path as String, step = step as Int] in
      var reported = 0
      try InPlaceStoreMigration(
        source: Self.model(newer: false),
        destination: Self.model(newer: true),
        configuration: nil,
        url: URL(fileURLWithPath: path),
        options: [:],
        effects: .live
      )
      .run { _ in
        if reported == step { raise(SIGKILL) }
        reported += 1
      }
    }
    try #expect(bench.dump() == before)
    try requireNew(bench)
  }

  @Test(
    "A full disk at any point leaves the old store, and the migration succeeds once there is space"
  )
  func fullDisk() throws {
    let bench = try filled()
    let before = try bench.dump()
    guard case .integer(let pages)? = try bench.connect().scalar("PRAGMA page_count") else {
      Issue.record("The file has no pages.")
      return
    }
    var failures = 0
    for extra in stride(from: Int64(0), to: 200, by: 4) {
      var options = MigrationBench.lightweight
      options[NSSQLitePragmasOption] = ["max_page_count": "\(pages + extra)"]
      guard let error = bench.refusal(Self.model(newer: true), options) else { break }
      failures += 1
      #expect(error.code == CocoaError.fileWriteOutOfSpace.rawValue)
      try #expect(bench.dump() == before, "\(extra) pages")
    }
    #expect(failures > 3)
    try requireNew(bench)
  }

  @Test("A reader with an open transaction sees the old store until it ends")
  func otherConnections() throws {
    let bench = try filled()
    let reader = try SQLiteConnection(path: bench.url.path, mode: .readOnly)
    try reader.execute("BEGIN")
    #expect(try reader.scalar("SELECT COUNT(ZBODY) FROM ZPOST") == .integer(400))
    try requireNew(bench)
    #expect(try reader.scalar("SELECT COUNT(ZBODY) FROM ZPOST") == .integer(400))
    try reader.execute("COMMIT")
    #expect(try reader.scalar("SELECT COUNT(ZHEADLINE) FROM ZPOST") == .integer(400))
  }

  @Test("A concurrent writer makes the migration wait, and then fail with nothing changed")
  func lockedFile() throws {
    let bench = try filled()
    let before = try bench.dump()
    let writer = try bench.connect()
    try writer.execute("BEGIN IMMEDIATE")
    var options = MigrationBench.lightweight
    options[NSPersistentStoreTimeoutOption] = 0.05
    let error = bench.refusal(Self.model(newer: true), options)
    #expect(error?.code == NSPersistentStoreTimeoutError)
    try writer.execute("ROLLBACK")
    try #expect(bench.dump() == before)
    try requireNew(bench)
  }

  @Test("Pages that are only in the WAL are migrated too")
  func walHoldsEverything() throws {
    let bench = try filled()
    let copy = try MigrationBench()
    // Copying both files while they are open keeps the WAL unchanged.
    let holder = try SQLiteConnection(path: bench.url.path, mode: .readWrite)
    try holder.execute("PRAGMA wal_autocheckpoint = 0; PRAGMA journal_mode = WAL")
    try holder.execute("UPDATE ZPOST SET ZTITLE = 'p-wal', ZBODY = ZBODY || 'y'")
    for suffix in ["", "-wal"] {
      try Data(contentsOf: URL(fileURLWithPath: bench.url.path + suffix))
        .write(to: URL(fileURLWithPath: copy.url.path + suffix))
    }
    try requireNew(copy)
    try copy.open(Self.model(newer: true)) { context in
      try #expect(
        context.all("Post").allSatisfy { $0.value(forKey: "headline") as? String == "p-wal" }
      )
    }
  }

  @Test("A process that is killed in a custom stage leaves the old store, with all its files")
  func killedStage() async throws {
    let bench = try filled()
    let before = try bench.dump()
    let path = bench.url.path
    await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
      let (older, newer) = (Self.model(newer: false), Self.model(newer: true))
      let stage = NSCustomMigrationStage(
        migratingFrom: NSManagedObjectModelReference(
          model: older,
          versionChecksum: older.versionChecksum
        ),
        to: NSManagedObjectModelReference(model: newer, versionChecksum: newer.versionChecksum)
      )
      stage.didMigrateHandler = { _, _ in raise(SIGKILL) }
      var options = MigrationBench.lightweight
      options[NSPersistentStoreStagedMigrationManagerOptionKey] = NSStagedMigrationManager([stage])
      _ = try NSPersistentStoreCoordinator(managedObjectModel: newer).addPersistentStore(
        ofType: NSSQLiteStoreType,
        configurationName: nil,
        at: URL(fileURLWithPath: path),
        options: options
      )
    }
    try #expect(bench.dump() == before)
    try requireNew(bench)
  }
}
