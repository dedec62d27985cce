import Foundation

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// What a running server leaves in its data folder, so that commands find it.
struct RunningServerNote: Codable, Hashable {
  private static let name = "server.json"

  var url: URL
  var pid: Int32

  /// The note of a server that still runs.
  static func read(in folder: URL) -> RunningServerNote? {
    guard let data = try? Data(contentsOf: folder.appendingPathComponent(name)),
      let note = try? JSONDecoder().decode(RunningServerNote.self, from: data),
      // Signal 0 only asks whether the process is there.
      kill(note.pid, 0) == 0 || errno == EPERM
    else { return nil }
    return note
  }

  func write(in folder: URL) throws {
    let data = try JSONEncoder().encode(self)
    try data.write(to: folder.appendingPathComponent(Self.name), options: .atomic)
  }

  static func remove(in folder: URL) {
    // A note that stays behind names a process that is gone, and is passed over.
    try? FileManager.default.removeItem(at: folder.appendingPathComponent(name))
  }
}

/// The operator's token: who may read the data folder may administer the server.
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

  /// The token, made at the first start; the file is for its owner's eyes.
  static func make(in folder: URL) throws -> String {
    if let token = read(in: folder) { return token }
    let token = newToken()
    let file = folder.appendingPathComponent(name)
    let isMade = FileManager.default.createFile(
      atPath: file.path,
      contents: Data((token + "\n").utf8),
      attributes: [.posixPermissions: 0o600]
    )
    guard isMade, read(in: folder) == token else {
      throw CocoaError(.fileWriteUnknown, userInfo: [NSFilePathErrorKey: file.path])
    }
    return token
  }

  /// Another token in place of the former one; a crash leaves one of the two.
  static func renew(in folder: URL) throws -> String {
    let token = newToken()
    let file = folder.appendingPathComponent(name)
    let next = folder.appendingPathComponent("\(name).next")
    let isMade = FileManager.default.createFile(
      atPath: next.path,
      contents: Data((token + "\n").utf8),
      attributes: [.posixPermissions: 0o600]
    )
    guard isMade, rename(next.path, file.path) == 0, read(in: folder) == token else {
      throw CocoaError(.fileWriteUnknown, userInfo: [NSFilePathErrorKey: file.path])
    }
    return token
  }
}
