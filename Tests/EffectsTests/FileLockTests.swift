import Effects
import Foundation
import Testing

#if canImport(Glibc)
import Glibc
#endif

@Suite("A lock on a file of its own")
struct FileLockTests {
  let path = FileManager.default.temporaryDirectory
    .appendingPathComponent("FileLockTests-\(UUID().uuidString)").path

  @Test("A file lock is exclusive, and releasing it keeps the file")
  func exclusion() throws {
    var lock = try FileLock.make(path)
    #expect(lock != nil)
    #expect(try FileLock.make(path) == nil)
    #expect(try FileLock.take(path) == nil)
    lock = nil
    #expect(try FileSystem.isThere(path))
    let next = try FileLock.take(path)
    try #require(next).remove()
    #expect(try !FileSystem.isThere(path))
  }

  @Test("A file that is missing is made by one call, and not taken by the other")
  func missing() throws {
    #expect(try FileLock.take(path) == nil)
    #expect(try !FileSystem.isThere(path))
    try #require(try FileLock.make(path)).remove()
  }

  @Test("A lock on a file that lost its name holds up no new one")
  func removed() throws {
    let old = try #require(try FileLock.make(path))
    try old.remove()
    let new = try #require(try FileLock.make(path))
    #expect(try FileLock.take(path) == nil)
    try new.remove()
    withExtendedLifetime(old) {}
  }

  @Test("A file that cannot be locked is an error, not a free lock")
  func failure() throws {
    #expect(throws: CocoaError.self) { try FileLock.make("\(path)/below") }
  }

  @Test("The lock of a process that was killed is free")
  func killed() async throws {
    await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
      let lock = try FileLock.make(path)
      raise(SIGKILL)
      _ = lock
    }
    try #require(try FileLock.take(path)).remove()
  }
}
