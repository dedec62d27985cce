import Effects
import Foundation
import OpenCloudKit
import Synchronization
import Testing

@Suite("Temporary files of fetched assets")
struct TemporaryAssetTests {
  // MARK: Objects of a file

  @Test("A file is removed an hour after its last object was released, and not before")
  func lifetime() {
    var uses = TemporaryFileUses()
    uses.begin("a")
    uses.begin("a")
    uses.begin("b")
    uses.end("a", at: 10)
    #expect(uses.takeDue(at: 100_000).isEmpty)
    uses.end("a", at: 20)
    uses.end("b", at: 30)
    #expect(uses.takeDue(at: 20 + TemporaryFileUses.lifetime - 1).isEmpty)
    #expect(uses.takeDue(at: 20 + TemporaryFileUses.lifetime) == ["a"])
    #expect(uses.takeDue(at: 30 + TemporaryFileUses.lifetime) == ["b"])
    #expect(uses.takeDue(at: 100_000).isEmpty)
  }

  @Test("A file that is used again is kept for an hour after the last release, not the first")
  func usedAgain() {
    var uses = TemporaryFileUses()
    uses.begin("a")
    uses.end("a", at: 0)
    uses.begin("a")
    #expect(uses.takeDue(at: TemporaryFileUses.lifetime).isEmpty)
    uses.end("a", at: 5000)
    #expect(uses.takeDue(at: 5000).isEmpty)
    #expect(uses.takeDue(at: 5000 + TemporaryFileUses.lifetime) == ["a"])
  }

  @Test("A downloaded file is released with the last copy of its record")
  func release() async throws {
    let service = ScriptedService()
    service.answer(
      """
      {"records":[{"recordName":"n","recordType":"T","fields":{"f":{"type":"ASSETID",
       "value":{"fileChecksum":"c","size":5,"downloadURL":"http://d.test/1"}}}}]}
      """
    )
    service.answer("bytes")
    func fetch() async throws -> URL {
      let record = try await service.container(seed: 4).privateCloudDatabase
        .record(for: CKRecord.ID(recordName: "n"))
      let copy = try #require(record.copy() as? CKRecord)
      let url = try #require((record["f"] as CKAsset?)?.fileURL)
      #expect(withExtendedLifetime(copy) { !TemporaryAssets.isReleased(url) })
      return url
    }
    let url = try await fetch()
    #expect(TemporaryAssets.isReleased(url))
    #expect(FileManager.default.fileExists(atPath: url.path))
    try FileManager.default.removeItem(at: url)
  }

  @Test("A download that fails leaves no partial file")
  func partial() async throws {
    let service = ScriptedService()
    let container = service.container(seed: 5)
    service.answer(
      """
      {"records":[{"recordName":"n","recordType":"T","fields":{"f":{"type":"ASSETID",
       "value":{"fileChecksum":"c","size":50,"downloadURL":"http://d.test/1"}}}}]}
      """
    )
    let text = "a part with a name of its own: \(UUID())"
    service.answer(text)
    await #expect(throws: CKError.self) {
      try await container.privateCloudDatabase.record(for: CKRecord.ID(recordName: "n"))
    }
    let files = try FileManager.default.contentsOfDirectory(
      at: TemporaryAssets.folder,
      includingPropertiesForKeys: nil
    )
    #expect(!files.contains { (try? Data(contentsOf: $0)) == Data(text.utf8) })
  }

  // MARK: Folders of processes

  /// A lock excludes another one of the same process too, so folders stand for processes here.
  @Test("The folder of a process that runs is kept, and that of one that has ended is removed")
  func folders() throws {
    let parent = FileManager.default.temporaryDirectory
      .appendingPathComponent("folders-\(UUID().uuidString)", isDirectory: true)
    defer { try? FileManager.default.removeItem(at: parent) }
    func file(in folder: ProcessFolder) throws -> String {
      try FileManager.default.createDirectory(at: folder.url, withIntermediateDirectories: true)
      let file = folder.url.appendingPathComponent("file")
      try Data("bytes".utf8).write(to: file)
      return file.path
    }
    let running = ProcessFolder(in: parent) { UUID() }
    let kept = try file(in: running)
    func ended() throws -> String { try file(in: ProcessFolder(in: parent) { UUID() }) }
    let left = try ended()
    withExtendedLifetime(running) {
      let next = ProcessFolder(in: parent) { UUID() }
      #expect(FileManager.default.fileExists(atPath: kept))
      #expect(!FileManager.default.fileExists(atPath: left))
      #expect(next.url != running.url)
    }
  }

  @Test("A folder whose name another process holds is not taken")
  func sameName() throws {
    let parent = FileManager.default.temporaryDirectory
      .appendingPathComponent("folders-\(UUID().uuidString)", isDirectory: true)
    defer { try? FileManager.default.removeItem(at: parent) }
    let (first, second) = (UUID(), UUID())
    let running = ProcessFolder(in: parent) { first }
    var names = [first, second]
    withExtendedLifetime(running) {
      let next = ProcessFolder(in: parent) { names.removeFirst() }
      #expect(next.url.lastPathComponent == second.uuidString)
    }
  }
}
