import Foundation

/// A store that is one file, read when it is opened and written whole at every save.
///
/// The objects are in memory. A save writes a new file and puts it in the old one's place, so a
/// crash leaves the old or the new, never half of one.
final class BinaryStore: NSAtomicStore, @unchecked Sendable {
  // Sendable: as its superclass.

  override func loadMetadata() throws {
    guard let url else { return }
    guard let file = try BinaryStoreFile.read(url) else {
      guard !isReadOnly else { throw BinaryStoreFile.missing(url) }
      return
    }
    metadata = file.metadata
  }

  override func load() throws {
    guard let url, let binding else { return }
    guard let file = try BinaryStoreFile.read(url) else { return try save() }
    try BinaryStoreCoding(store: self, binding: binding, options: options).decode(file, url)
  }

  override func save() throws {
    guard let url, let binding else { return }
    guard !isReadOnly else { throw readOnlyError }
    let coding = BinaryStoreCoding(store: self, binding: binding, options: options)
    try BinaryStoreFile(metadata: metadata, entities: coding.encode()).write(to: url)
  }

  override var type: String { NSBinaryStoreType }

  override class func metadataForPersistentStore(with url: URL) throws -> [String: Any] {
    guard let file = try BinaryStoreFile.read(url) else { throw BinaryStoreFile.missing(url) }
    return file.metadata
  }

  override class func setMetadata(
    _ metadata: [String: Any]?,
    forPersistentStoreAt url: URL
  ) throws {
    guard var file = try BinaryStoreFile.read(url) else { throw BinaryStoreFile.missing(url) }
    let known = file.metadata
    file.metadata = metadata ?? [:]
    for key in [NSStoreTypeKey, NSStoreUUIDKey] where file.metadata[key] == nil {
      file.metadata[key] = known[key]
    }
    try file.write(to: url)
  }
}
