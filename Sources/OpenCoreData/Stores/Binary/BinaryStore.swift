import Foundation

/// A store in one file, which is read when it is opened and written as a whole by every save.
///
/// The objects are in memory. A save writes a new file and renames it over the old one, so a crash
/// leaves a complete file, either the old or the new one.
final class BinaryStore: NSAtomicStore, @unchecked Sendable {
  // Sendable: as its superclass is.

  private var modelCache: Data?

  override func loadMetadata() throws {
    guard let url else { return }
    guard let file = try BinaryStoreFile.read(url) else {
      guard !isReadOnly else { throw BinaryStoreFile.missing(url) }
      return
    }
    metadata = file.metadata
  }

  override func load() throws {
    if let url, !isReadOnly { StoreDraft.sweep(beside: url) }
    guard let url, let binding else { return }
    guard let file = try BinaryStoreFile.read(url) else { return try save() }
    try BinaryStoreCoding(store: self, binding: binding, options: options).decode(file, url)
    if let last = file.lastReference { reserveReferences(upTo: last) }
  }

  override func save() throws {
    guard let url, let binding else { return }
    guard !isReadOnly else { throw readOnlyError }
    let coding = BinaryStoreCoding(store: self, binding: binding, options: options)
    try BinaryStoreFile(
      metadata: metadata,
      entities: coding.encode(),
      model: try carriedModel(),
      lastReference: highestReference
    )
    .write(to: url)
  }

  /// The model in the encoding that SQLite stores use, for later migrations.
  private func carriedModel() throws -> Data? {
    if let modelCache { return modelCache }
    let made = try persistentStoreCoordinator.map {
      try ModelArchive.modelCache(for: $0.managedObjectModel)
    }
    modelCache = made
    return made
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
