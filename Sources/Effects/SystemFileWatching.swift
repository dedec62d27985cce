import Dispatch
import Foundation
import Synchronization

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

#if os(Linux)
/// Watches folders with one inotify instance for the process.
///
/// The kernel wakes a dispatch source after a write; between writes no code runs. It watches
/// folders rather than files because SQLite deletes and creates its log again.
public final class SystemFileWatching: FileWatching, @unchecked Sendable {
  // Unchecked: the source is created and started in the initializer and not changed afterwards.
  private struct Watch: Sendable {
    let files: Set<String>
    let changed: @Sendable () -> Void
  }

  private struct State: Sendable {
    var nextNumber = 0
    /// The watches by the folder's inotify descriptor.
    var folders: [Int32: [Int: Watch]] = [:]
  }

  private let descriptor: Int32
  private let source: any DispatchSourceRead
  private let state = Mutex(State())

  /// The shared instance: the kernel limits the instances of each user.
  public static let shared = SystemFileWatching()

  /// The size of one read; events that do not fit are read next.
  private static let bufferSize = 16 * 1024

  private init() {
    descriptor = inotify_init1(Int32(IN_NONBLOCK) | Int32(IN_CLOEXEC))
    source = DispatchSource.makeReadSource(
      fileDescriptor: max(descriptor, 0),
      queue: DispatchQueue(label: "SystemFileWatching")
    )
    guard descriptor >= 0 else { return }
    source.setEventHandler { [weak self] in self?.readEvents() }
    source.resume()
  }

  /// Calls the closure after each write to one of the files in a folder.
  public func watch(
    folder: String,
    files: Set<String>,
    _ changed: @escaping @Sendable () -> Void
  ) -> FileWatch? {
    guard descriptor >= 0 else { return nil }
    return state.withLock { state in
      // Adding the same folder again returns the same descriptor.
      let number = inotify_add_watch(descriptor, folder, UInt32(IN_MODIFY) | UInt32(IN_ATTRIB))
      guard number >= 0 else { return nil }
      let own = state.nextNumber
      state.nextNumber += 1
      state.folders[number, default: [:]][own] = Watch(files: files, changed: changed)
      return FileWatch { [weak self] in self?.end(number, own) }
    }
  }

  private func end(_ number: Int32, _ own: Int) {
    state.withLock { state in
      state.folders[number]?[own] = nil
      guard state.folders[number]?.isEmpty == true else { return }
      state.folders[number] = nil
      inotify_rm_watch(descriptor, number)
    }
  }

  /// Reads the available events and calls each matching closure once.
  private func readEvents() {
    var written: [Int32: Set<String>] = [:]
    var isOverflowed = false
    withUnsafeTemporaryAllocation(byteCount: Self.bufferSize, alignment: 8) { buffer in
      guard let base = buffer.baseAddress else { return }
      while true {
        let count = read(descriptor, base, buffer.count)
        guard count > 0 else { return }
        var place = 0
        while place + MemoryLayout<inotify_event>.size <= count {
          let event = (base + place).load(as: inotify_event.self)
          let name = (base + place + MemoryLayout<inotify_event>.size)
            .assumingMemoryBound(to: CChar.self)
          if event.mask & UInt32(IN_Q_OVERFLOW) != 0 { isOverflowed = true }
          if event.len > 0 { written[event.wd, default: []].insert(String(cString: name)) }
          place += MemoryLayout<inotify_event>.size + Int(event.len)
        }
      }
    }
    let concerned = state.withLock { state in
      state.folders.flatMap { number, watches in
        watches.values.filter { watch in
          isOverflowed || !(written[number]?.isDisjoint(with: watch.files) ?? true)
        }
      }
    }
    for watch in concerned { watch.changed() }
  }
}
#endif
