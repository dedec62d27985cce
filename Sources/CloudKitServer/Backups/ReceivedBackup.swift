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

/// Writes the archive of `BackupArchive` to a folder, and checks it against its manifest.
///
/// The folder has its name once the backup is complete; until then the name ends with `.partial`.
package struct ReceivedBackup {
  private let folder: URL
  private let partial: URL
  private var state = State.header
  /// Bytes that are not a whole header, or not a whole member of records, yet.
  private var buffer = Data()
  /// The path and size that a header of records announced for the next member.
  private var records: [String: String] = [:]
  private var received: [BackupManifest.File] = []
  private var paths: Set<String> = []

  private enum State {
    case header
    /// A header of `size` bytes of records, `padded` with the padding; it counts if it is not
    /// global.
    case records(size: Int, padded: Int, counts: Bool)
    case member(Member)
    case padding(Int)
    case end
  }

  private struct Member {
    var path: String
    var size: Int64
    var left: Int64
    var hash = SHA256()
    var handle: FileHandle
  }

  private static let blockSize = 512
  /// Paths are short: records are below a block or two.
  private static let recordLimit = 65_536

  /// Throws if a backup cannot be written to the folder.
  package init(to folder: URL) throws {
    self.folder = folder
    partial = folder.appendingPathExtension("partial")
    try Self.check(folder)
    try? FileManager.default.removeItem(at: partial)
    try Self.writing(partial.path) {
      try FileManager.default.createDirectory(
        at: partial,
        withIntermediateDirectories: true,
        attributes: PrivateFile.folderAttributes
      )
    }
  }

  /// Throws if there is something at the backup's place.
  package static func check(_ folder: URL) throws {
    guard !FileManager.default.fileExists(atPath: folder.path) else {
      throw BackupError(description: "A file or folder exists at \(folder.path) already.")
    }
  }

  /// Removes what was received.
  package func discard() {
    try? FileManager.default.removeItem(at: partial)
  }

  // MARK: Reading

  /// Takes the next bytes of the archive.
  package mutating func take(_ piece: Data) throws {
    var piece = piece[...]
    while !piece.isEmpty {
      switch state {
      case .header:
        guard let block = fill(to: Self.blockSize, from: &piece) else { return }
        try readHeader(block)
      case .records(let size, let padded, let counts):
        guard let block = fill(to: padded, from: &piece) else { return }
        if counts { records = try Self.records(block.prefix(size)) }
        state = .header
      case .member(let member): try take(&piece, member)
      case .padding(let count):
        let skipped = min(count, piece.count)
        piece = piece.dropFirst(skipped)
        state = skipped == count ? .header : .padding(count - skipped)
      case .end: return
      }
    }
  }

  /// Collects `count` bytes; nil while they are incomplete.
  private mutating func fill(to count: Int, from piece: inout Data) -> Data? {
    let taken = piece.prefix(count - buffer.count)
    buffer += taken
    piece = piece.dropFirst(taken.count)
    guard buffer.count == count else { return nil }
    defer { buffer = Data() }
    return buffer
  }

  private mutating func readHeader(_ block: Data) throws {
    let block = [UInt8](block)
    guard block.contains(where: { $0 != 0 }) else {
      state = .end
      return
    }
    let sum = block.enumerated().reduce(0) { total, entry in
      total + ((148..<156).contains(entry.offset) ? 0x20 : Int(entry.element))
    }
    guard let announced = Self.octal(block[148..<156]), announced == Int64(sum),
      let short = Self.octal(block[124..<136])
    else { throw Self.damaged }
    switch block[156] {
    case UInt8(ascii: "x"), UInt8(ascii: "g"):
      guard short <= Self.recordLimit else { throw Self.damaged }
      let size = Int(short)
      let padded = (size + Self.blockSize - 1) / Self.blockSize * Self.blockSize
      state =
        padded == 0
        ? .header
        : .records(size: size, padded: padded, counts: block[156] == UInt8(ascii: "x"))
    case UInt8(ascii: "0"):
      let name = String(decoding: block[0..<100].prefix { $0 != 0 }, as: UTF8.self)
      try beginMember(records["path"] ?? name, records["size"].flatMap { Int64($0) } ?? short)
      records = [:]
    default: throw Self.damaged
    }
  }

  private static func octal(_ bytes: ArraySlice<UInt8>) -> Int64? {
    let digits = bytes.prefix { (0x30...0x37).contains($0) }
    return Int64(String(decoding: digits, as: UTF8.self), radix: 8)
  }

  /// Lines of `length key=value\n`.
  private static func records(_ bytes: Data) throws -> [String: String] {
    var found: [String: String] = [:]
    var rest = [UInt8](bytes)[...]
    while !rest.isEmpty {
      let digits = rest.prefix { $0 != 0x20 }
      guard let length = Int(String(decoding: digits, as: UTF8.self)),
        length > digits.count + 1, length <= rest.count
      else { throw damaged }
      let line = rest.prefix(length).dropFirst(digits.count + 1).dropLast()
      let parts = String(decoding: line, as: UTF8.self).split(ascii: "=", maxSplits: 1)
      guard parts.count == 2 else { throw damaged }
      found[String(parts[0])] = String(parts[1])
      rest = rest.dropFirst(length)
    }
    return found
  }

  // MARK: Writing

  private mutating func beginMember(_ path: String, _ size: Int64) throws {
    let file = BackupManifest.File(path: path, size: size, checksum: "")
    guard file.isInside, size >= 0, paths.insert(path).inserted else {
      throw Self.damaged
    }
    let place = partial.appendingPathComponent(path)
    let handle = try Self.writing(place.path) {
      try FileManager.default.createDirectory(
        at: place.deletingLastPathComponent(),
        withIntermediateDirectories: true,
        attributes: PrivateFile.folderAttributes
      )
      PrivateFile.make(place.path)
      return try FileHandle(forWritingTo: place)
    }
    let member = Member(path: path, size: size, left: size, handle: handle)
    if size == 0 { try end(member) } else { state = .member(member) }
  }

  private mutating func take(_ piece: inout Data, _ member: Member) throws {
    var member = member
    let bytes = piece.prefix(Int(min(Int64(piece.count), member.left)))
    piece = piece.dropFirst(bytes.count)
    member.hash.update(data: bytes)
    try Self.writing(member.path) { try member.handle.write(contentsOf: bytes) }
    member.left -= Int64(bytes.count)
    if member.left == 0 { try end(member) } else { state = .member(member) }
  }

  private mutating func end(_ member: Member) throws {
    try Self.writing(member.path) {
      try member.handle.synchronize()
      try member.handle.close()
    }
    received.append(
      BackupManifest.File(
        path: member.path,
        size: member.size,
        checksum: Data(member.hash.finalize()).hexadecimal
      )
    )
    let rest = Int(member.size % Int64(Self.blockSize))
    state = rest == 0 ? .header : .padding(Self.blockSize - rest)
  }

  /// Checks that everything has come, and gives the folder its name.
  package mutating func finish() throws -> BackupManifest {
    guard case .end = state, received.last?.path == BackupManifest.fileName else {
      throw BackupError(description: "The server ended the backup before it was complete.")
    }
    received.removeLast()
    let manifest = try BackupFolder(partial).manifest()
    guard manifest.files == received else {
      throw BackupError(
        description: "The received files differ from the backup's manifest: they were damaged on "
          + "the way. Take the backup again."
      )
    }
    try Self.writing(folder.path) {
      // The folders of assets too.
      sync()
      guard !FileManager.default.fileExists(atPath: folder.path) else {
        throw CocoaError(.fileWriteFileExists)
      }
      try FileManager.default.moveItem(at: partial, to: folder)
      try DurableFolder.synchronize(folder.deletingLastPathComponent())
    }
    return manifest
  }

  // MARK: Errors

  private static let damaged = BackupError(description: "The server sent no backup.")

  /// Names the place of an error of the file system.
  private static func writing<Result>(
    _ path: String,
    _ body: () throws -> Result
  ) throws -> Result {
    do {
      return try body()
    } catch {
      throw BackupError(description: "\(path) cannot be written: \(error.systemReason)")
    }
  }
}
