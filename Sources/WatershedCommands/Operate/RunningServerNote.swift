import CloudKitServer
import Foundation
import Synchronization

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// A file that a running server writes to its data folder, so that commands find it.
///
/// The server locks the file for its lifetime. The process ID alone proves nothing: after a crash
/// another program may have the ID, and the address too, and would receive the operator's token.
struct RunningServerNote: Codable, Hashable {
  private static let name = "server.json"
  /// The open files of this process's notes, by path; closing one would release its lock.
  private static let held = Mutex<[String: Int32]>([:])

  var url: URL
  var pid: Int32

  /// The note of a server that is still running.
  static func read(in folder: URL) -> RunningServerNote? {
    let descriptor = open(folder.appendingPathComponent(name).path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    // If the lock is free, the note belongs to a server that has ended.
    guard flock(descriptor, LOCK_SH | LOCK_NB) != 0, errno == EWOULDBLOCK,
      let data = try? file.readToEnd()
    else { return nil }
    return try? JSONDecoder().decode(RunningServerNote.self, from: data)
  }

  func write(in folder: URL) throws {
    let path = folder.appendingPathComponent(Self.name).path
    let next = path + ".next"
    // A file that a server of another user left cannot be opened, but removed.
    try? FileManager.default.removeItem(atPath: next)
    // The lock first: a command must not find the note unlocked.
    let descriptor = try PrivateFile.descriptor(creating: URL(fileURLWithPath: next))
    let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: false)
    do {
      guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
        throw CocoaError(.fileWriteUnknown, userInfo: [NSFilePathErrorKey: next])
      }
      try file.write(contentsOf: try JSONEncoder().encode(self))
      guard rename(next, path) == 0 else {
        throw CocoaError(.fileWriteUnknown, userInfo: [NSFilePathErrorKey: path])
      }
    } catch {
      try? file.close()
      throw error
    }
    Self.hold(descriptor, at: path)
  }

  static func remove(in folder: URL) {
    let path = folder.appendingPathComponent(name).path
    // A note that is left is unlocked, and ignored.
    try? FileManager.default.removeItem(atPath: path)
    hold(nil, at: path)
  }

  /// Keeps a note's file open, instead of the previous one.
  private static func hold(_ descriptor: Int32?, at path: String) {
    let former = held.withLock { held in
      let former = held[path]
      held[path] = descriptor
      return former
    }
    if let former { try? FileHandle(fileDescriptor: former, closeOnDealloc: false).close() }
  }
}

/// The operator's token: the owner of the data folder may administer the server.
enum AdminTokenFile {
  private static let name = "admin-token"

  static func read(in folder: URL) -> String? {
    let file = folder.appendingPathComponent(name)
    guard let text = try? String(contentsOf: file, encoding: .utf8) else { return nil }
    let token = text.trimmingCharacters(in: .whitespacesAndNewlines)
    return token.isEmpty ? nil : token
  }

  /// A token of 256 random bits.
  static func newToken() -> String {
    var bytes: [UInt8] = []
    for _ in 0..<32 { bytes.append(.random(in: .min ... .max)) }
    return bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }

  /// The token, created at the first start; only its owner can read the file.
  static func make(in folder: URL) throws -> String {
    let file = folder.appendingPathComponent(name)
    // A token that may not be read is not replaced.
    if try ForeignFile.isThere(file), let token = read(in: folder) { return token }
    let token = newToken()
    try PrivateFile.write(Data((token + "\n").utf8), to: file)
    guard read(in: folder) == token else {
      throw CocoaError(.fileWriteUnknown, userInfo: [NSFilePathErrorKey: file.path])
    }
    return token
  }

  /// Replaces the token; a crash leaves either the old one or the new one.
  static func renew(in folder: URL) throws -> String {
    let token = newToken()
    let file = folder.appendingPathComponent(name)
    try PrivateFile.write(Data((token + "\n").utf8), to: file)
    guard read(in: folder) == token else {
      throw CocoaError(.fileWriteUnknown, userInfo: [NSFilePathErrorKey: file.path])
    }
    return token
  }
}
