import Effects
import Foundation

/// What a power failure leaves of the files of a folder.
///
/// `system_calls_keep_synced` copies each file that is brought to the disk. All changes of names are taken to be on the
/// disk: a file system may write them before the contents of files. A file that never was brought to the disk is empty.
struct SyncedFiles {
  /// The folder of the copies, which have the numbers of inodes as names.
  let copies: URL

  /// Copies all files of a folder: their present contents are on the disk.
  func begin(with folder: URL) throws {
    try FileSystem.removeFolder(copies.path)
    try FileSystem.makeFolder(copies.path)
    for file in try Self.files(of: folder) {
      try FileManager.default.copyItem(at: file, to: try copy(of: file))
    }
  }

  /// Gives the files of a folder the contents that a power failure leaves; some keep the present one.
  func apply(to folder: URL, keepingSome: Bool) throws {
    for file in try Self.files(of: folder) {
      // Memory that processes share; SQLite makes it again.
      if file.lastPathComponent.hasSuffix("-shm") {
        try FileSystem.remove(file.path)
        continue
      }
      if keepingSome, Bool.random() { continue }
      let copy = try copy(of: file)
      // In place: another name of the same file has the same content.
      let content = try FileSystem.contents(of: copy.path) ?? Data()
      let handle = try FileHandle(forWritingTo: file)
      try handle.truncate(atOffset: 0)
      try handle.write(contentsOf: content)
      try handle.close()
    }
  }

  private func copy(of file: URL) throws -> URL {
    let attributes = try FileManager.default.attributesOfItem(atPath: file.path)
    let number = attributes[.systemFileNumber] as? NSNumber
    return copies.appendingPathComponent("\(number?.uint64Value ?? 0)")
  }

  private static func files(of folder: URL) throws -> [URL] {
    var files: [URL] = []
    for name in try FileSystem.names(in: folder.path) {
      let url = folder.appendingPathComponent(name)
      switch try FileSystem.look(at: url.path) {
      case .folder: files += try self.files(of: url)
      case .file: files.append(url)
      default: continue
      }
    }
    return files
  }
}
