import CloudKitWebServices
import Effects
import Foundation

/// One `records/modify` of the shared database may write the zones of several owners.
extension RecordService {
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

  /// The owners who share anything with the caller.
  private func sharingOwners(_ context: RequestContext) async throws -> Set<String> {
    try await reads.run(for: context) { [self] control in
      try storage.read(control) { Set(try databases.shareLinks(context, $0).map(\.owner)) }
    }
  }

  /// The refusals of operations on the zones of an owner who shares nothing with the caller: the
  /// same as for zones that are not shared, without a turn of the writers.
  private func refusals(
    of request: ModifyRecordsRequest,
    _ context: RequestContext
  ) throws -> [Data] {
    try request.operations.map { operation in
      let zone = operation.record.zoneID ?? request.zoneID ?? .defaultZone
      var error = ErrorDictionary(
        .zoneNotFound,
        "Zone '\(zone.zoneName)' does not exist",
        zoneID: zone
      )
      if let fault = operation.fault { error = ErrorDictionary(.badRequest, fault) }
      error.recordName = operation.record.recordName
      return try WireCoding.encode(context.stripped(error))
    }
  }

  /// The weight of a part within its request, by the size that it adds to its owner's database, so
  /// that parts for invented owners take nothing of it.
  private static func weight(of operations: [RecordOperation]) throws -> Double {
    try operations.reduce(0) { sum, operation in
      let sharing = try operation.record.sharing.map { try WireCoding.encode($0).count } ?? 0
      return sum + 200 + Double(sharing + FieldSurvey(operation.record.fields ?? [:]).size)
    }
  }

  /// Writes one owner's database after the other: no transaction spans two databases, so atomicity
  /// is per owner.
  func modify(
    of parts: [[Int]],
    _ request: ModifyRecordsRequest,
    _ context: RequestContext,
    bodySize: Int
  ) async throws -> Data {
    var items = Array(repeating: Data("null".utf8), count: request.operations.count)
    var bytes = 0
    let owners = try await sharingOwners(context)
    let whole = try Self.weight(of: request.operations)
    for indexes in parts {
      var part = request
      part.operations = indexes.map { request.operations[$0] }
      let records: [Data]
      do {
        let zone = part.operations.first?.record.zoneID ?? request.zoneID
        guard owners.contains(zone?.ownerRecordName ?? "") else {
          let refused = try refusals(of: part, context)
          for (index, record) in zip(indexes, refused) { items[index] = record }
          bytes += refused.reduce(0) { $0 + $1.count }
          continue
        }
        let share = try Self.weight(of: part.operations) / whole
        let reply = try await modifyOfOneOwner(
          part,
          context,
          bodySize: Int((Double(bodySize) * share).rounded(.up)),
          replied: bytes
        )
        records = try JSONMembers(of: reply).elements(of: "records")
      } catch {
        // Another owner's part may already be written: the error applies to these operations alone.
        let uuid = effects.uuid().uuidString.lowercased()
        let failure = context.stripped(failures.dictionary(of: error, uuid: uuid))
        RequestSubject.current?.note(
          refused: part.operations.map { _ in failure.serverErrorCode }
        )
        records = try part.operations.map { operation in
          var error = failure
          error.recordName = operation.record.recordName
          return try WireCoding.encode(error)
        }
      }
      for (index, record) in zip(indexes, records) { items[index] = record }
      bytes += records.reduce(0) { $0 + $1.count }
    }
    var reply = Data(capacity: bytes + items.count + 16)
    reply.append(contentsOf: #"{"records":["#.utf8)
    for (index, item) in items.enumerated() {
      if index > 0 { reply.append(UInt8(ascii: ",")) }
      reply.append(item)
    }
    reply.append(contentsOf: "]}".utf8)
    return reply
  }
}
