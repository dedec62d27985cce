import CloudKitWebServices
import Foundation

/// One `records/modify` of the shared database may write the zones of several owners.
extension CloudKitService {
  /// The operations on one owner's zones, with their indexes in the request.
  private struct Part {
    var owner: String
    var indexes: [Int]
  }

  /// The indexes of the operations by the zones' owners, in the order of their first appearance;
  /// nil if all have one owner.
  func operationsByOwner(
    _ request: ModifyRecordsRequest,
    _ context: RequestContext
  ) -> [[Int]]? {
    guard context.scope == .shared else { return nil }
    var parts: [Part] = []
    for (index, operation) in request.operations.enumerated() {
      let zone = operation.record.zoneID ?? request.zoneID ?? .defaultZone
      let owner = zone.ownerRecordName ?? ""
      if let known = parts.firstIndex(where: { $0.owner == owner }) {
        parts[known].indexes.append(index)
      } else {
        parts.append(Part(owner: owner, indexes: [index]))
      }
    }
    return parts.count > 1 ? parts.map(\.indexes) : nil
  }

  /// Writes one owner's database after the other: no transaction spans two databases, so atomicity
  /// is per owner.
  func modifyRecords(
    of parts: [[Int]],
    _ request: ModifyRecordsRequest,
    _ context: RequestContext,
    bodySize: Int
  ) async throws -> Data {
    var items: [Any] = Array(repeating: NSNull(), count: request.operations.count)
    for indexes in parts {
      var part = request
      part.operations = indexes.map { request.operations[$0] }
      let records: [Any]
      do {
        let reply = try await modifyRecordsOfOne(
          part,
          context,
          bodySize: bodySize / parts.count
        )
        let object = try JSONSerialization.jsonObject(with: reply) as? [String: Any]
        records = object?["records"] as? [Any] ?? []
      } catch {
        // Another owner's part may already be written: the error applies to these operations alone.
        let uuid = effects.uuid().uuidString.lowercased()
        let failure = context.stripped(dictionary(of: error, uuid: uuid))
        records = try part.operations.map { operation in
          var error = failure
          error.recordName = operation.record.recordName
          return try JSONSerialization.jsonObject(with: try WireCoding.encode(error))
        }
      }
      for (index, record) in zip(indexes, records) { items[index] = record }
    }
    return try JSONSerialization.data(
      withJSONObject: ["records": items],
      options: [.sortedKeys, .withoutEscapingSlashes]
    )
  }
}
