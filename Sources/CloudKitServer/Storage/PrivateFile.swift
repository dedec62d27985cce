import Foundation

/// Files and folders that only their owner can read, also in a folder that other users can read.
enum PrivateFile {
  static var attributes: [FileAttributeKey: Any] { [.posixPermissions: 0o600] }
  static var folderAttributes: [FileAttributeKey: Any] { [.posixPermissions: 0o700] }

  /// Creates an empty file if there is none; if that fails, the following write reports why.
  static func make(_ path: String) {
    guard !FileManager.default.fileExists(atPath: path) else { return }
    _ = FileManager.default.createFile(atPath: path, contents: nil, attributes: attributes)
  }

  /// Writes a file atomically, unreadable for other users from the first byte on.
  static func write(_ data: Data, to file: URL) throws {
    let partial = file.appendingPathExtension("partial")
    try? FileManager.default.removeItem(at: partial)
    make(partial.path)
    let handle = try FileHandle(forWritingTo: partial)
    try handle.write(contentsOf: data)
    try handle.synchronize()
    try handle.close()
    guard rename(partial.path, file.path) == 0 else {
      throw CocoaError(.fileWriteUnknown, userInfo: [NSFilePathErrorKey: file.path])
    }
  }
}
