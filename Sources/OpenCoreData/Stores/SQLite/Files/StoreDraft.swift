import Effects
import Foundation

/// A copy of a store that is being made beside the store's place, with all that SQLite and large values
/// add to it.
///
/// A process that is killed leaves its draft behind. So a lock file is made first, which is locked as
/// long as the draft is being written: where the lock is free, the writer is gone and the draft can go
/// too. A draft without a lock file is never removed by others.
struct StoreDraft {
  private static let lockSuffix = "-lock"

  let url: URL
  /// Nil where no lock could be had, as on a file system without them.
  private let lock: FileLock?

  /// Chooses a unique name, with the unique part first.
  ///
  /// The folder of external data is named after the file without its extension, and the folder of a process that
  /// crashed must not collide with this one.
  init(beside store: URL, effects: Effects) {
    Self.sweep(beside: store)
    let file = store.resolvingSymlinksInPath()
    url = file.deletingLastPathComponent()
      .appendingPathComponent(".\(effects.uuid().uuidString)-\(file.lastPathComponent)")
    let path = url.path + Self.lockSuffix
    do {
      lock = try FileLock.make(path)
    } catch {
      // Without a lock file the draft is not swept, which costs space and nothing else.
      _ = try? FileSystem.remove(path)
      lock = nil
    }
  }

  /// Refuses a copy part of which is still in a log: the file alone takes the place.
  func requireWhole() throws {
    if try StorePlace.hasLog(of: url) {
      throw StoreError(
        .fileWriteUnknown,
        "The copy of the store at \(url.path) could not be completed.",
        remedy: "Check the disk, and try again.",
        context: [NSFilePathErrorKey: url.path]
      )
    }
  }

  /// Removes what is left.
  func remove() {
    StorePlace.discardStore(at: url)
    // A lock file that stays is removed by the next sweep.
    try? lock?.remove()
  }

  // MARK: Sweeping

  /// Removes the drafts that processes which were killed have left beside a store, as far as that goes.
  static func sweep(beside store: URL) {
    let file = store.resolvingSymlinksInPath()
    let folder = file.deletingLastPathComponent()
    FileSystem.removeDrafts(in: folder.path, of: file.lastPathComponent)
    FileSystem.removeDrafts(in: ExternalFolder(store: store).url.path)
    // A draft that cannot be listed or removed costs space and nothing else.
    guard let names = try? FileSystem.names(in: folder.path) else { return }
    for name in names where isLock(name, ofDraftFor: file.lastPathComponent) {
      let path = folder.appendingPathComponent(name).path
      guard let lock = try? FileLock.take(path) else { continue }
      let draft = String(name.dropLast(lockSuffix.count))
      StorePlace.discardStore(at: folder.appendingPathComponent(draft))
      // A binary store is written as a file of its own first.
      for file in names where file.hasPrefix(".\(draft)-") {
        _ = try? FileSystem.remove(folder.appendingPathComponent(file).path)
      }
      try? lock.remove()
    }
  }

  /// Whether a name is that of the lock of a store's draft, or of a draft's own draft.
  private static func isLock(_ name: String, ofDraftFor store: String) -> Bool {
    guard name.hasSuffix(store + lockSuffix) else { return false }
    var rest = name.dropLast(lockSuffix.count)
    while let inner = nameWithoutPrefix(rest) {
      if inner == store { return true }
      rest = inner
    }
    return false
  }

  /// The part of a name after `.UUID-`; nil if the name does not begin so.
  private static func nameWithoutPrefix(_ name: Substring) -> Substring? {
    let length = 36
    guard name.first == ".", name.dropFirst(1 + length).first == "-",
      UUID(uuidString: String(name.dropFirst().prefix(length))) != nil
    else { return nil }
    return name.dropFirst(2 + length)
  }
}
