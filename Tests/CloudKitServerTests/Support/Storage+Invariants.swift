import Foundation
import WatershedSQLite

@testable import CloudKitServer

extension Storage {
  /// The broken invariants of all rows, a sentence each, in a copy that the storage writes into a
  /// folder.
  func brokenInvariants(in folder: URL) throws -> [String] {
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    let file = folder.appendingPathComponent("audit-\(UUID().uuidString).sqlite")
    try copy(to: file)
    let connection = try SQLiteConnection(path: file.path)
    return try StorageAudit(session: SQLiteSession(connection: connection)).brokenInvariants()
  }
}
