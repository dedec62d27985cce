import Foundation
import OpenCoreData
import Testing
import WatershedSQLite

@Suite("Files that are no store for the model are refused and unchanged")
struct BadFileTests {
  private static func model(
    _ name: String = "Note",
    _ attribute: String = "text"
  )
    -> NSManagedObjectModel
  {
    let model = NSManagedObjectModel()
    model.entities = [
      ModelParts.entity(name, [ModelParts.attribute(attribute, .stringAttributeType)])
    ]
    return model
  }

  /// Opens the file, and checks the error code and that the file is unchanged.
  private static func expectRefusal(_ url: URL, code: Int, _ model: NSManagedObjectModel) throws {
    let before = try Data(contentsOf: url)
    do {
      let store = try SQLiteStore(model: model, url: url)
      store.close()
      Issue.record("\(url.lastPathComponent) was opened")
    } catch let error as NSError {
      #expect(error.domain == NSCocoaErrorDomain)
      #expect(error.code == code, "\(error.userInfo)")
      #expect(error.userInfo[NSLocalizedDescriptionKey] != nil)
    }
    #expect(try Data(contentsOf: url) == before)
  }

  @Test("Text, a truncated store and another program's database are refused")
  func strangers() throws {
    let folder = try ScratchFolder()
    let text = folder.file("text.sqlite")
    try Data(String(repeating: "Dear diary, ", count: 1000).utf8).write(to: text)
    try Self.expectRefusal(text, code: 259, Self.model())
    let foreign = folder.file("foreign.sqlite")
    do {
      let connection = try SQLiteConnection(path: foreign.path)
      try connection.execute("CREATE TABLE recipes (id INTEGER PRIMARY KEY, name TEXT)")
    }
    try Self.expectRefusal(foreign, code: 259, Self.model())
    let whole = folder.file("whole.sqlite")
    try SQLiteStore(model: Self.model(), url: whole).close()
    let truncated = folder.file("truncated.sqlite")
    try Data(contentsOf: whole).prefix(5000).write(to: truncated)
    try Self.expectRefusal(truncated, code: 259, Self.model())
    let header = folder.file("header.sqlite")
    try Data(contentsOf: whole).prefix(100).write(to: header)
    try Self.expectRefusal(header, code: 259, Self.model())
  }

  @Test("The error for a store of another model describes both sides")
  func otherModel() throws {
    let folder = try ScratchFolder()
    let url = folder.file("notes.sqlite")
    try SQLiteStore(model: Self.model(), url: url).close()
    try Self.expectRefusal(url, code: 134_100, Self.model("Note", "body"))
    do {
      _ = try SQLiteStore(model: Self.model("Song"), url: url)
      Issue.record("it was opened")
    } catch let error as NSError {
      let sentence = error.localizedDescription
      #expect(sentence.contains("Note") && sentence.contains("Song"), "\(sentence)")
      #expect(error.userInfo["metadata"] is [String: Any])
    }
  }

  @Test("The error for a store of a newer format has both formats")
  func newerFormat() throws {
    let folder = try ScratchFolder()
    let url = folder.file("newer.sqlite")
    try SQLiteStore(model: Self.model(), url: url).close()
    var metadata = try SQLiteStore.metadata(at: url)
    metadata["NSStoreModelVersionHashesVersion"] = 4
    try SQLiteStore.setMetadata(metadata, at: url)
    do {
      let connection = try SQLiteConnection(path: url.path)
      try connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    }
    try Self.expectRefusal(url, code: 134_020, Self.model())
  }

  @Test("A missing folder, a folder at the path, and a missing file opened read-only are refused")
  func places() throws {
    let folder = try ScratchFolder()
    func code(_ url: URL, _ options: [AnyHashable: Any] = [:]) -> Int? {
      do {
        _ = try SQLiteStore(model: Self.model(), url: url, options: options)
        return nil
      } catch let error as NSError {
        return error.code
      }
    }
    #expect(code(folder.file("no/where/store.sqlite")) == 512)
    #expect(code(folder.url) == 256)
    let missing = folder.file("missing.sqlite")
    #expect(code(missing, [NSReadOnlyPersistentStoreOption: true]) == 260)
    #expect(!FileManager.default.fileExists(atPath: missing.path))
  }

  @Test("Destroying leaves a file that is no store unchanged")
  func destroying() throws {
    let folder = try ScratchFolder()
    let text = folder.file("letter.txt")
    try Data("Dear diary".utf8).write(to: text)
    #expect(throws: NSError.self) { try SQLiteStore.destroy(at: text) }
    #expect(FileManager.default.fileExists(atPath: text.path))
    let url = folder.file("notes.sqlite")
    try SQLiteStore(model: Self.model(), url: url).close()
    try SQLiteStore.destroy(at: url)
    #expect(
      try FileManager.default.contentsOfDirectory(atPath: folder.url.path).sorted()
        == ["letter.txt", "notes.sqlite"]
    )
    #expect(try Data(contentsOf: url).isEmpty)
  }

  @Test("A store opened read-only refuses to save")
  func readOnly() throws {
    let folder = try ScratchFolder()
    let url = folder.file("notes.sqlite")
    try SQLiteStore(model: Self.model(), url: url).close()
    let store = try SQLiteStore(
      model: Self.model(),
      url: url,
      options: [NSReadOnlyPersistentStoreOption: true]
    )
    #expect(store.isReadOnly)
    #expect(throws: NSError.self) { try store.write(author: nil) { _ in } }
  }
}
