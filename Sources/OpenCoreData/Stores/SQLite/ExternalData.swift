import Effects
import Foundation

/// Large binary values in files of their own beside the store.
///
/// The column's first byte is a tag: 1, and the data follows; 2, and the name of a file in
/// `.<store>_SUPPORT/_EXTERNAL_DATA` follows, with a NUL behind it.
struct ExternalData: Sendable {
  /// Files that a transaction made, and files that it leaves without an owner.
  struct Pending: Sendable {
    fileprivate(set) var made: [URL] = []
    fileprivate(set) var abandoned: [URL] = []

    /// Gives up the files made since there were so many: their row was not written.
    mutating func abandonMade(after count: Int) {
      guard made.count > count else { return }
      abandoned += made[count...]
    }
  }

  /// Nil for a store without a file: everything stays inline.
  let folder: URL?
  let effects: Effects

  /// Values larger than this go to a file.
  ///
  /// Core Data's own limit is about this.
  static let threshold = 100_000
  private static let inline: UInt8 = 1
  private static let file: UInt8 = 2

  init(storeURL: URL?, effects: Effects) {
    self.effects = effects
    folder = storeURL.map { url in
      let name = url.deletingPathExtension().lastPathComponent
      return url.deletingLastPathComponent()
        .appendingPathComponent(".\(name)_SUPPORT", isDirectory: true)
        .appendingPathComponent("_EXTERNAL_DATA", isDirectory: true)
    }
  }

  /// The value behind a column; nil where its file is gone.
  ///
  /// A file that is there and cannot be read is no value that is gone: that throws.
  func read(_ stored: Data) throws -> Data? {
    switch stored.first {
    case Self.inline: return Data(stored.dropFirst())
    case Self.file:
      guard let url = file(of: stored) else { return nil }
      if let data = try FileSystem.contents(of: url.path) { return data }
      StoreLog.warning("The file \(url.path) of a large value is gone; the value reads as nil.")
      return nil
    // The attribute got the flag after the row was written.
    case nil: return Data()
    default: return stored
    }
  }

  /// What goes into the column; a large value is written to its file first.
  func stored(_ data: Data, files: inout Pending) throws -> Data {
    guard let folder, data.count > Self.threshold else { return Data([Self.inline]) + data }
    try FileSystem.makeFolder(folder.path)
    let name = effects.uuid().uuidString
    let url = folder.appendingPathComponent(name)
    try FileSystem.save(data, to: url.path)
    files.made.append(url)
    return Data([Self.file]) + Data(name.utf8) + Data([0])
  }

  /// Notes that the column's value is being replaced or deleted.
  func abandon(_ stored: Data, files: inout Pending) {
    guard stored.first == Self.file, let url = file(of: stored) else { return }
    files.abandoned.append(url)
  }

  /// Removes what nothing refers to after the transaction ended.
  func settle(_ files: Pending, committed: Bool) {
    Self.remove(committed ? files.abandoned : files.made)
  }

  static func remove(_ files: [URL]) {
    for url in files {
      // A file that cannot be removed costs space and nothing else.
      _ = try? FileSystem.remove(url.path)
    }
  }

  private func file(of stored: Data) -> URL? {
    let name = String(decoding: stored.dropFirst().prefix { $0 != 0 }, as: UTF8.self)
    // The name is a UUID: anything else could point outside the folder.
    guard UUID(uuidString: name) != nil else { return nil }
    return folder?.appendingPathComponent(name)
  }
}
