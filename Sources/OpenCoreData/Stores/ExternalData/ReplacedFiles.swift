import Effects
import Foundation
import Synchronization
import WatershedSQLite

/// The files of large values that no row of the newest state refers to, until they are removed.
///
/// A reader of an earlier state, in this process or in another one, still needs them: a query
/// generation, a turn of a context, a copy in progress. In WAL mode a checkpoint copies the whole log
/// only if every reader sees the newest state (sqlite.org/wal.html, "Checkpointing"), so a complete
/// checkpoint permits the removal. Rows in memory that have only the path of a file need it too; see
/// ``ExternalFile``.
///
/// A file that has to stay is noted in a folder beside the values, with the name of its store, so that
/// the next opening removes it.
final class ReplacedFiles: Sendable {
  private struct Group: Sendable {
    /// The moment of this process's readers at which the rows were replaced.
    let moment: Int
    let files: [URL]
  }

  private struct State: Sendable {
    var groups: [Group] = []
    /// How many reads end before the file is asked again for readers of other processes.
    var pause = 0
  }

  private let state = Mutex(State())
  private let isNeeded = Atomic(false)
  private let folder: ExternalFolder

  /// A checkpoint costs as much as many reads.
  private static let pauseAfterFailure = 64

  init(store: URL) {
    folder = ExternalFolder(store: store)
  }

  /// Whether files wait for their removal.
  var isEmpty: Bool { !isNeeded.load(ordering: .acquiring) }

  func add(_ files: [URL], at moment: Int) {
    state.withLock { state in
      state.groups.append(Group(moment: moment, files: files))
      state.pause = 0
    }
    isNeeded.store(true, ordering: .releasing)
  }

  /// Removes the files that no reader of this process needs, if `isComplete` finds that no other one
  /// does either.
  func remove(
    atOnce: Bool = false,
    where isDone: (_ moment: Int) -> Bool,
    ifComplete isComplete: () -> Bool
  ) {
    let due = state.withLock { state in
      var due: [Group] = []
      if state.pause > 0, !atOnce {
        state.pause -= 1
        return due
      }
      var rest: [Group] = []
      for group in state.groups {
        guard isDone(group.moment) else {
          rest.append(group)
          continue
        }
        var (needed, free): ([URL], [URL]) = ([], [])
        for file in group.files {
          if ExternalFile.isNeeded(file.path) { needed.append(file) } else { free.append(file) }
        }
        if !needed.isEmpty { rest.append(Group(moment: group.moment, files: needed)) }
        if !free.isEmpty { due.append(Group(moment: group.moment, files: free)) }
      }
      state.groups = rest
      return due
    }
    guard !due.isEmpty else { return }
    let files = due.flatMap(\.files)
    if isComplete() {
      ExternalData.remove(files)
      if (try? FileSystem.isThere(folder.replaced.path)) == true {
        ExternalData.remove(files.map { note(of: $0) })
      }
    } else {
      noteFiles(files)
      state.withLock { state in
        state.groups += due
        state.pause = Self.pauseAfterFailure
      }
    }
    state.withLock { isNeeded.store(!$0.groups.isEmpty, ordering: .releasing) }
  }

  /// Notes the files that are left when the store is closed.
  func close() {
    noteFiles(state.withLock { $0.groups.flatMap(\.files) })
  }

  // MARK: Notes

  private func note(of file: URL) -> URL {
    folder.replaced.appendingPathComponent("\(file.lastPathComponent)-\(storeName)")
  }

  private var storeName: String { folder.store.lastPathComponent }

  private func noteFiles(_ files: [URL]) {
    guard !files.isEmpty else { return }
    // Without a note, a file only costs disk space.
    guard (try? FileSystem.makeFolder(folder.replaced.path)) != nil else { return }
    for file in files {
      let path = note(of: file).path
      if (try? FileSystem.isThere(path)) == false { try? FileSystem.save(Data(), to: path) }
    }
  }

  /// The noted files of the store that its rows, as a connection reads them, do not refer to.
  func left(by connection: SQLiteConnection) throws -> [URL] {
    let suffix = "-\(storeName)"
    let names = try FileSystem.names(in: folder.replaced.path).filter { $0.hasSuffix(suffix) }
      .map { String($0.dropLast(suffix.count)) }
    guard !names.isEmpty else { return [] }
    let referred = try ExternalReferences(connection: connection).names()
    return names.filter { !referred.contains($0) && UUID(uuidString: $0) != nil }
      .map(folder.file)
  }
}
