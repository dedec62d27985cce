import Effects
import Foundation
import Testing

@Suite("FileSystem distinguishes a missing file from an unreadable one")
struct FileSystemTests {
  let folder = FileManager.default.temporaryDirectory
    .appendingPathComponent("FileSystemTests-\(UUID().uuidString)").path

  init() throws {
    try FileSystem.makeFolder(folder)
  }

  private func finish() throws {
    try FileSystem.removeFolder(folder)
    #expect(try !FileSystem.isThere(folder))
  }

  @Test("look(at:) distinguishes a file, a folder, a broken link and a missing path")
  func answers() throws {
    try FileSystem.save(Data("abc".utf8), to: "\(folder)/file")
    try FileManager.default.createSymbolicLink(
      atPath: "\(folder)/link",
      withDestinationPath: "\(folder)/file"
    )
    try FileManager.default.createSymbolicLink(
      atPath: "\(folder)/lost",
      withDestinationPath: "\(folder)/nothing"
    )
    #expect(try FileSystem.look(at: "\(folder)/file") == .file(size: 3))
    #expect(try FileSystem.look(at: "\(folder)/link") == .file(size: 3))
    #expect(try FileSystem.look(at: "\(folder)/lost") == .other)
    #expect(try FileSystem.look(at: folder) == .folder)
    #expect(try FileSystem.look(at: "\(folder)/nothing") == .missing)
    #expect(try FileSystem.look(at: "\(folder)/file/below") == .missing)
    #expect(try FileSystem.look(at: "\(folder)/nothing/below") == .missing)
    #expect(try FileSystem.size(of: "\(folder)/nothing") == 0)
    #expect(try FileSystem.names(in: folder) == ["file", "link", "lost"])
    #expect(try FileSystem.names(in: "\(folder)/nothing").isEmpty)
    #expect(try FileSystem.contents(of: "\(folder)/nothing") == nil)
    #expect(try FileSystem.contents(of: "\(folder)/link") == Data("abc".utf8))
    try finish()
  }

  @Test("A path that cannot be examined is an error, and neither present nor missing")
  func failures() throws {
    let long = "\(folder)/\(String(repeating: "x", count: 300))"
    #expect(throws: CocoaError.self) { try FileSystem.look(at: long) }
    #expect(throws: CocoaError.self) { try FileSystem.isThere(long) }
    #expect(throws: CocoaError.self) { try FileSystem.isWritable(long) }
    #expect(throws: CocoaError.self) { try FileSystem.contents(of: long) }
    #expect(throws: CocoaError.self) { try FileSystem.remove(long) }
    #expect(throws: CocoaError.self) { try FileSystem.names(in: long) }
    try FileSystem.save(Data(), to: "\(folder)/file")
    #expect(throws: CocoaError.self) { try FileSystem.names(in: "\(folder)/file") }
    #expect(throws: CocoaError.self) { try FileSystem.makeFolder("\(folder)/file") }
    #expect(throws: CocoaError.self) { try FileSystem.copy("\(folder)/none", over: "\(folder)/x") }
    // The folder above is there, and takes no folder.
    #expect(throws: CocoaError.self) { try FileSystem.makeFolder("/proc/none/below") }
    let error = #expect(throws: CocoaError.self) {
      try FileSystem.save(Data(), to: "\(folder)/none/file")
    }
    #expect(error?.code == .fileNoSuchFile)
    #expect(error?.filePath?.hasPrefix("\(folder)/none") == true)
    try finish()
  }

  @Test("A file is replaced whole, with its permissions, and leaves no draft")
  func replacing() throws {
    let path = "\(folder)/file"
    try FileSystem.save(Data("old".utf8), to: path)
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
    try FileSystem.save(Data(repeating: 7, count: 700_000), to: path)
    let attributes = try FileManager.default.attributesOfItem(atPath: path)
    #expect(attributes[.posixPermissions] as? Int == 0o600)
    #expect(try FileSystem.size(of: path) == 700_000)
    try FileSystem.copy(path, over: "\(folder)/copy")
    #expect(try FileSystem.contents(of: "\(folder)/copy") == Data(repeating: 7, count: 700_000))
    #expect(try FileSystem.names(in: folder) == ["copy", "file"])
    try finish()
  }

  @Test("A file takes a free name once, and another name in any case")
  func moving() throws {
    for name in ["one", "two"] { try FileSystem.save(Data(name.utf8), to: "\(folder)/\(name)") }
    let error = #expect(throws: CocoaError.self) {
      try FileSystem.move("\(folder)/one", toFree: "\(folder)/two")
    }
    #expect(error?.code == .fileWriteFileExists)
    try FileSystem.move("\(folder)/one", toFree: "\(folder)/three")
    try FileSystem.move("\(folder)/three", over: "\(folder)/two")
    #expect(try FileSystem.names(in: folder) == ["two"])
    #expect(try FileSystem.contents(of: "\(folder)/two") == Data("one".utf8))
    #expect(try FileSystem.remove("\(folder)/two"))
    #expect(try !FileSystem.remove("\(folder)/two"))
    try finish()
  }

  @Test("A folder goes with all that is in it; what links lead to stays")
  func removing() throws {
    try FileSystem.makeFolder("\(folder)/a/b/c")
    try FileSystem.save(Data(), to: "\(folder)/a/b/file")
    try FileSystem.save(Data(), to: "\(folder)/kept")
    try FileManager.default.createSymbolicLink(
      atPath: "\(folder)/a/link",
      withDestinationPath: folder
    )
    try FileSystem.duplicate("\(folder)/kept", as: "\(folder)/a/second")
    try FileSystem.removeFolder("\(folder)/a")
    #expect(try FileSystem.names(in: folder) == ["kept"])
    try finish()
  }
}
