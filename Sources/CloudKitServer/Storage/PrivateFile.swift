import Foundation

/// Files and folders for their owner's eyes alone: the folder around them may be one that others look
/// into.
enum PrivateFile {
  static var attributes: [FileAttributeKey: Any] { [.posixPermissions: 0o600] }
  static var folderAttributes: [FileAttributeKey: Any] { [.posixPermissions: 0o700] }

  /// Makes an empty file where there is none; where it cannot be made, whoever writes it says why.
  static func make(_ path: String) {
    guard !FileManager.default.fileExists(atPath: path) else { return }
    _ = FileManager.default.createFile(atPath: path, contents: nil, attributes: attributes)
  }

  /// Writes a file in one piece, closed to others from the first byte on.
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
