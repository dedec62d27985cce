import CloudKitWebServices
import Crypto
import Foundation

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// The server's keys for encrypted fields, by ID; it is kept in a file beside the database, never in
/// it.
struct KeyRing: Codable, Sendable {
  /// The key that seals.
  private(set) var current: String
  /// 32 bytes each; old ones stay as long as something they sealed does.
  private(set) var keys: [String: Data]

  init(first key: Data) {
    current = "1"
    keys = ["1": key]
  }

  mutating func add(_ key: Data) {
    let next = (keys.keys.compactMap { Int($0) }.max() ?? 0) + 1
    current = "\(next)"
    keys[current] = key
  }

  func key(_ id: String) throws -> SymmetricKey {
    guard let key = keys[id] else { throw MissingKey(id: id) }
    return SymmetricKey(data: key)
  }

  /// The ring in a file; nil where there is no file yet.
  static func read(_ file: URL) throws -> KeyRing? {
    guard FileManager.default.fileExists(atPath: file.path) else { return nil }
    return try WireCoding.decode(KeyRing.self, from: try Data(contentsOf: file))
  }

  /// Puts the ring in its place, readable for its owner only and never half-written.
  func write(_ file: URL) throws {
    try FileManager.default.createDirectory(
      at: file.deletingLastPathComponent(),
      withIntermediateDirectories: true
    )
    let partial = file.appendingPathExtension("new")
    // A left-over of a crash would keep its permissions.
    try? FileManager.default.removeItem(at: partial)
    guard
      FileManager.default.createFile(
        atPath: partial.path,
        contents: try WireCoding.encode(self),
        attributes: [.posixPermissions: 0o600]
      )
    else { throw CocoaError(.fileWriteUnknown, userInfo: [NSFilePathErrorKey: partial.path]) }
    let handle = try FileHandle(forWritingTo: partial)
    try handle.synchronize()
    try handle.close()
    guard rename(partial.path, file.path) == 0 else {
      throw CocoaError(.fileWriteUnknown, userInfo: [NSFilePathErrorKey: file.path])
    }
  }

  struct MissingKey: Error, CustomStringConvertible {
    var id: String

    var description: String { "the key \(id) is not in the server's key file" }
  }
}
