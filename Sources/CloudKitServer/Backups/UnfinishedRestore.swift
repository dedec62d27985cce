import Foundation

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// The mark of a folder into which a backup is being restored.
///
/// It is created before the first file and removed after the last step, which begins another
/// incarnation. A restore that was killed leaves it behind: a server that opened such a folder would
/// continue change tokens whose changes the backup lacks, or start empty.
enum UnfinishedRestore {
  static let fileName = "restore-unfinished"

  static func mark(_ folder: URL) throws {
    try PrivateFile.write(Data(), to: file(in: folder))
    try DurableFolder.synchronize(folder)
  }

  static func unmark(_ folder: URL) throws {
    // The restored files are durable before the mark is gone.
    sync()
    try FileManager.default.removeItem(at: file(in: folder))
    try DurableFolder.synchronize(folder)
  }

  /// Throws for a folder whose restore was not finished.
  static func check(_ folder: URL) throws {
    guard FileManager.default.fileExists(atPath: file(in: folder).path) else { return }
    throw BackupError(
      description:
        "A restore into \(folder.path) was not finished. Delete the folder and what else "
        + "was restored, such as keys elsewhere or tables of PostgreSQL, and restore again."
    )
  }

  private static func file(in folder: URL) -> URL {
    folder.appendingPathComponent(fileName)
  }
}
