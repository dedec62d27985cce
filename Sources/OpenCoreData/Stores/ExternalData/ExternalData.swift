import Effects
import Foundation

/// Stores large binary values in files of their own beside the store.
///
/// The column's first byte is a tag: 1 is followed by the data, 2 by the name of a file in
/// `.<store>_SUPPORT/_EXTERNAL_DATA` and a NUL.
struct ExternalData: Sendable {
  /// The files that a transaction created, and the files that no row refers to once it commits.
  struct Pending: Sendable {
    fileprivate(set) var made: [URL] = []
    fileprivate(set) var abandoned: [URL] = []

    /// Discards the files created after the first `count`: their row was not written.
    mutating func abandonMade(after count: Int) {
      guard made.count > count else { return }
      abandoned += made[count...]
    }
  }

  /// Nil for a store in memory: every value stays in its column.
  let folder: URL?
  let effects: Effects

  /// Values of more bytes than this are stored in a file; Core Data's own limit is about the same.
  static let threshold = 100_000
  private static let inline: UInt8 = 1
  private static let file: UInt8 = 2

  init(storeURL: URL?, effects: Effects) {
    self.effects = effects
    folder = storeURL.map { ExternalFolder(store: $0).url }
  }

  /// The value that a column stores or refers to; nil where its file is missing.
  func read(_ stored: Data) throws -> Data? { try contents(stored)?.bytes() }

  /// The value that a column stores, or the file that it refers to, which is not read; nil where the
  /// file is missing.
  ///
  /// Throws where the file exists and cannot be opened, and where it is missing and required.
  func contents(
    _ stored: Data,
    requiringFile isRequired: Bool = false
  ) throws -> ExternalFile.Contents? {
    switch stored.first {
    case Self.inline: return .data(Data(stored.dropFirst()))
    case Self.file:
      guard let path = file(of: stored)?.path else { return nil }
      if let found = try ExternalFile.contents(of: path, effects.mappings) { return found }
      if isRequired { throw MissingLargeValue() }
      StoreLog.warning("The file \(path) of a large value is gone; the value reads as nil.")
      return nil
    // The attribute was made external after the row was written.
    case nil: return .data(Data())
    default: return .data(stored)
    }
  }

  /// The bytes to store in the column; a large value is written to its file first.
  func stored(_ data: Data, files: inout Pending) throws -> Data {
    guard let folder, data.count > Self.threshold else { return Data([Self.inline]) + data }
    try FileSystem.makeFolder(folder.path)
    let name = effects.uuid().uuidString
    let url = folder.appendingPathComponent(name)
    try FileSystem.save(data, to: url.path)
    files.made.append(url)
    return Self.reference(to: name)
  }

  /// Notes that the column's value is being replaced or deleted, so that its file can be removed.
  func abandon(_ stored: Data, files: inout Pending) {
    guard stored.first == Self.file, let url = file(of: stored) else { return }
    files.abandoned.append(url)
  }

  /// Removes the files that no row refers to after the transaction ended.
  func settle(_ files: Pending, committed: Bool) {
    Self.remove(committed ? files.abandoned : files.made)
  }

  static func remove(_ files: [URL]) {
    for url in files {
      // A file that cannot be removed only costs disk space.
      _ = try? FileSystem.remove(url.path)
    }
  }

  private func file(of stored: Data) -> URL? {
    Self.fileName(of: stored).flatMap { folder?.appendingPathComponent($0) }
  }

  // MARK: References

  /// The bytes of a reference: the tag, a UUID and a NUL.
  static let referenceLength = 38

  /// The column's value for a file.
  static func reference(to name: String) -> Data { Data([file]) + Data(name.utf8) + Data([0]) }

  /// The name of the file that a column's value refers to.
  static func fileName(of stored: Data) -> String? {
    guard stored.first == file else { return nil }
    let name = String(decoding: stored.dropFirst().prefix { $0 != 0 }, as: UTF8.self)
    // The name is a UUID: anything else could point outside the folder.
    return UUID(uuidString: name) == nil ? nil : name
  }
}
