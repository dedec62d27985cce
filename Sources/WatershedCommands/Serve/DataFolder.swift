import CloudKitServer
import Foundation

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// A server's data folder, locked by one process at a time.
final class DataFolder: Sendable {
  let url: URL
  private let database: String?
  private let lock: DataFolderLock

  init(opening path: String, database: String? = nil) throws(ServeError) {
    self.database = database
    url = URL(fileURLWithPath: path, isDirectory: true).standardizedFileURL
    // All files that this process creates from here on are readable for their owner only, even in a
    // folder that is open to others: SQLite, Foundation and libraries create files too.
    _ = umask(0o077)
    do {
      lock = try DataFolderLock(creating: url)
    } catch {
      switch error {
      case .inUse: throw .folderInUse(url.path)
      case .unwritable(let reason): throw .unwritableFolder(url.path, reason)
      }
    }
  }

  /// Opens the service on this folder, with the configuration as changed by `adjust`.
  func openService(
    _ adjust: (inout ServiceConfiguration) throws -> Void = { _ in }
  ) async throws -> CloudKitService {
    var configuration = ServiceConfiguration(dataFolder: url, database: database)
    try adjust(&configuration)
    do {
      return try await CloudKitService.open(configuration)
    } catch {
      throw ServeError.unusableData(
        configuration.database == nil ? url.path : "the database",
        "\(error)"
      )
    }
  }

  /// Releases the lock.
  func close() { lock.release() }
}

/// Why a server did not start, as a sentence.
enum ServeError: Error, Hashable, CustomStringConvertible {
  case unwritableFolder(String, String)
  case folderInUse(String)
  case unusableData(String, String)
  case badConfiguration(String)

  var description: String {
    switch self {
    case .unwritableFolder(let path, let reason):
      "The data folder \(path) cannot be written: \(reason)."
    case .folderInUse(let path):
      "Another server uses the data folder \(path); stop it first, or choose another with --data."
    case .unusableData(let path, let reason):
      "The data in \(path) cannot be opened: \(reason)"
    case .badConfiguration(let reason):
      "The configuration cannot be used: \(reason)."
    }
  }
}
