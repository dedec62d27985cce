import Effects
import Foundation
import Synchronization

/// The file of a large value, shared by all rows in memory that refer to it.
///
/// Reading a row does not read the file. It is mapped into memory, so that it remains readable after
/// another context or process has replaced the value and removed the file. Of more files than may be
/// mapped a row has the path alone: the value is read at each use, and this process does not remove the
/// file while a row refers to it; see ``ReplacedFiles``.
///
/// Rows that were read separately have the same bytes at the same address, so that comparing their
/// values reads nothing.
final class ExternalFile: Sendable {
  /// The size of a file in the row cache's accounting: a page of memory.
  static let countedBytes = 4096

  private let path: String
  private let mappings: FileMappings
  private let mapped: Data?
  private let handle = WeakHandle<ExternalFile>()
  /// Set once the file could not be read: two looks at one row give the same value.
  private let isUnreadable = Atomic(false)

  private init(path: String, mapped: Data?, mappings: FileMappings) {
    self.path = path
    self.mapped = mapped
    self.mappings = mappings
  }

  deinit {
    handle.clear()
    let address = mapped.map(Self.address)
    Self.table.withLock { $0.remove(path, address, handle) }
  }

  /// The value; nil where the file is gone or can no longer be read.
  ///
  /// The file could be opened when the row was read. Only another process can have removed it since,
  /// and the value is lost only if the file was not mapped. A row that is read again looks again.
  var data: Data? {
    do {
      if let data = try bytes() { return data }
      StoreLog.warning("The file \(path) of a large value is gone; the value reads as nil.")
    } catch {
      StoreLog.warning("A large value reads as nil: \(error)")
    }
    return nil
  }

  /// The value; nil where the file is gone.
  ///
  /// Throws where it can no longer be read.
  func bytes() throws -> Data? {
    if let mapped { return mapped }
    guard !isUnreadable.load(ordering: .relaxed) else { return nil }
    do {
      switch try mappings.contents(of: path) {
      case .read(let data), .mapped(let data): return data
      case .unmapped: return try FileSystem.contents(of: path)
      case nil: isUnreadable.store(true, ordering: .relaxed)
      }
    } catch {
      isUnreadable.store(true, ordering: .relaxed)
      throw error
    }
    return nil
  }

  // MARK: Sharing

  /// The contents of a path.
  enum Contents {
    /// The bytes of a small file.
    case data(Data)
    case file(ExternalFile)

    /// The value; nil where the file is gone.
    func bytes() throws -> Data? {
      switch self {
      case .data(let data): data
      case .file(let file): try file.bytes()
      }
    }
  }

  private struct Table {
    struct Entry {
      let handle: WeakHandle<ExternalFile>
      let isMapped: Bool
    }

    var byPath: [String: Entry] = [:]
    /// The entries by the addresses of mapped bytes.
    var byAddress: [UInt: Entry] = [:]

    /// Removes the entries of an object that is being deallocated, unless a newer object has them.
    mutating func remove(
      _ path: String,
      _ address: UInt?,
      _ handle: WeakHandle<ExternalFile>
    ) {
      if byPath[path]?.handle === handle { byPath[path] = nil }
      if let address, byAddress[address]?.handle === handle { byAddress[address] = nil }
    }
  }

  /// No object may be released under the lock: its deallocation takes it.
  private static let table = Mutex(Table())

  /// The contents of the file at a path; nil where there is none.
  static func contents(of path: String, _ mappings: FileMappings) throws -> Contents? {
    let known = table.withLock { $0.byPath[path]?.handle.object }
    if let known, !known.isUnreadable.load(ordering: .relaxed) { return .file(known) }
    switch try mappings.contents(of: path) {
    case nil: return nil
    case .read(let data): return .data(data)
    case .mapped(let data): return .file(share(path, data, mappings))
    case .unmapped: return .file(share(path, nil, mappings))
    }
  }

  private static func share(
    _ path: String,
    _ mapped: Data?,
    _ mappings: FileMappings
  ) -> ExternalFile {
    let made = ExternalFile(path: path, mapped: mapped, mappings: mappings)
    made.handle.hold(made)
    let entry = Table.Entry(handle: made.handle, isMapped: mapped != nil)
    return withExtendedLifetime(made) {
      table.withLock { table in
        // Another thread may have opened the file at the same time.
        if let known = table.byPath[path]?.handle.object,
          !known.isUnreadable.load(ordering: .relaxed)
        {
          return known
        }
        table.byPath[path] = entry
        if let mapped { table.byAddress[address(of: mapped)] = entry }
        return made
      }
    }
  }

  /// The file whose mapped bytes a value consists of; nil for other values.
  static func file(of data: Data) -> ExternalFile? {
    guard data.count >= FileMappings.smallest else { return nil }
    let address = address(of: data)
    let found = table.withLock { $0.byAddress[address]?.handle.object }
    // A slice from the first byte on has the same address.
    return found?.mapped?.count == data.count ? found : nil
  }

  /// Whether rows in memory have only the path of a file.
  static func isNeeded(_ path: String) -> Bool {
    table.withLock { $0.byPath[path]?.isMapped == false }
  }

  private static func address(of data: Data) -> UInt {
    data.withUnsafeBytes { UInt(bitPattern: $0.baseAddress) }
  }
}
