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
///
/// Opening a service removes unused uploads; while another server runs, that would remove files
/// that its clients are about to save.
final class DataFolder: Sendable {
  let url: URL
  private let database: String?
  private let descriptor: Int32

  init(opening path: String, database: String? = nil) throws(ServeError) {
    self.database = database
    url = URL(fileURLWithPath: path, isDirectory: true).standardizedFileURL
    // All files that this process creates from here on are readable for their owner only, even in a
    // folder that is open to others: SQLite, Foundation and libraries create files too.
    _ = umask(0o077)
    do {
      // Other users of this machine get no access; an existing folder keeps its mode.
      try FileManager.default.createDirectory(
        at: url,
        withIntermediateDirectories: true,
        attributes: [.posixPermissions: 0o700]
      )
    } catch {
      throw .unwritableFolder(url.path, Self.reason(of: error))
    }
    let lock = url.appendingPathComponent("lock").path
    descriptor = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else {
      throw .unwritableFolder(url.path, String(cString: strerror(errno)))
    }
    guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
      let code = errno
      _ = Self.closeFile(descriptor)
      throw code == EWOULDBLOCK
        ? .folderInUse(url.path)
        : .unwritableFolder(url.path, String(cString: strerror(code)))
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
  func close() {
    _ = Self.closeFile(descriptor)
  }

  private static func closeFile(_ descriptor: Int32) -> Int32 {
    #if canImport(Glibc)
    Glibc.close(descriptor)
    #elseif canImport(Musl)
    Musl.close(descriptor)
    #else
    Darwin.close(descriptor)
    #endif
  }

  /// The system's message, without Foundation's text around it.
  private static func reason(of error: any Error) -> String {
    let underlying = (error as NSError).userInfo[NSUnderlyingErrorKey] as? NSError
    if let underlying, underlying.domain == NSPOSIXErrorDomain {
      return String(cString: strerror(Int32(underlying.code)))
    }
    let text = (error as NSError).localizedDescription
    return text.hasSuffix(".") ? String(text.dropLast()) : text
  }
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
