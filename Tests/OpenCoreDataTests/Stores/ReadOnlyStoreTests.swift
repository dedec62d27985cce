import Foundation
import OpenCoreData
import Testing

@Suite("Read-only stores")
struct ReadOnlyStoreTests {
  private let readOnly: [AnyHashable: Any] = [NSReadOnlyPersistentStoreOption: true]

  private func files(_ bench: MigrationBench) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: bench.folder.url.path).sorted()
  }

  private func store() throws -> (MigrationBench, NSManagedObjectModel) {
    let model = MigrationBench.model(ModelParts.entity("Post", [ModelParts.text("title")]))
    let bench = try MigrationBench()
    try bench.open(model, [:]) { _ = $0.insert("Post", ["title": "a"]) }
    return (bench, model)
  }

  @Test("Reading changes neither the file nor its folder")
  func leavesNothing() throws {
    let (bench, model) = try store()
    let bytes = try Data(contentsOf: bench.url)
    let before = try files(bench)
    #expect(before == ["Store.sqlite"])
    try bench.open(model, readOnly) { context in
      let posts = try context.all("Post")
      #expect(posts.count == 1)
    }
    #expect(try files(bench) == before)
    #expect(try Data(contentsOf: bench.url) == bytes)
  }

  @Test("The log of another connection is kept, with its contents")
  func othersLog() throws {
    let (bench, model) = try store()
    let writer = try bench.connect()
    try writer.execute("PRAGMA wal_autocheckpoint = 0; UPDATE ZPOST SET ZTITLE = 'b'")
    try bench.open(model, readOnly) { context in
      let post = try context.all("Post").first
      #expect(post?.value(forKey: "title") as? String == "b")
    }
    #expect(try files(bench).contains("Store.sqlite-wal"))
    #expect(try writer.scalar("SELECT ZTITLE FROM ZPOST") == .text("b"))
  }

  @Test("A connection that opens the file while it is read keeps the log")
  func lateWriter() throws {
    let (bench, model) = try store()
    let writer = try bench.open(model, readOnly) { context in
      _ = try context.all("Post")
      let writer = try bench.connect()
      #expect(try writer.scalar("SELECT COUNT(*) FROM ZPOST") == .integer(1))
      return writer
    }
    #expect(try files(bench).contains("Store.sqlite-wal"))
    try writer.execute("UPDATE ZPOST SET ZTITLE = 'c'")
    try bench.open(model, readOnly) { context in
      let post = try context.all("Post").first
      #expect(post?.value(forKey: "title") as? String == "c")
    }
  }
}
