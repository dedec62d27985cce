import CloudKitWebServices
import Foundation

/// In development, data goes with the fields and types that an import deletes.
extension CloudKitService {
  /// Removes from the development databases of a container what its schema has lost.
  ///
  /// Page by page and as saves and deletions, so that devices are told; what a reference holds
  /// back stays. It follows the schema's own transaction: a server that stops in the middle leaves
  /// the data of the records it had not reached, and the same import does not go on from there.
  func erase(_ difference: SchemaDifference, container: String) async throws {
    let types = difference.removedTypes
    let stripped = difference.typesWithRemovedFields.subtracting(types)
    guard !types.isEmpty || !stripped.isEmpty else { return }
    let partitions = try storage.read {
      try $0.partitions(container: container, environment: .development)
    }
    for (key, id) in partitions.sorted(by: { $0.value.rawValue < $1.value.rawValue })
    where key.scope != .shared {
      let context = RequestContext(
        container: container,
        environment: .development,
        scope: key.scope,
        principal: Principal(
          account: "",
          userRecordName: key.scope == .public ? ZoneID.publicOwner : key.owner
        ),
        isExtended: false,
        wantsSyncToken: false,
        signInURL: ""
      )
      for type in types.sorted() {
        try await erase(type, .forceDelete, in: id, context)
      }
      for type in stripped.sorted() where type != ShareDictionary.recordType {
        try await erase(type, .forceUpdate, in: id, context)
      }
    }
  }

  private func erase(
    _ type: String,
    _ operation: RecordOperationType,
    in id: PartitionID,
    _ context: RequestContext
  ) async throws {
    try await activate([QueryPlan.everything], of: type, id)
    var walk = IndexWalk(
      type: type,
      field: QueryPlan.everything.name,
      zone: nil,
      limit: limits.itemsPerRequest
    )
    while true {
      let position = walk
      let (entries, zones) = try storage.read { snapshot in
        (try snapshot.entries(in: id, position), try snapshot.livingZones(in: id))
      }
      let names = Dictionary(zones.map { ($0.number, $0.name) }, uniquingKeysWith: { $1 })
      let operations = entries.compactMap { entry -> RecordOperation? in
        let isDefault = entry.record.zone == .defaultZone
        let zone = isDefault ? ZoneID.defaultZoneName : names[entry.record.zone]
        guard let zone else { return nil }
        return RecordOperation(
          operationType: operation,
          record: RecordDictionary(
            recordName: entry.record.name,
            recordType: operation.isDelete ? nil : type,
            fields: operation.isDelete ? nil : [:],
            zoneID: ZoneID(zoneName: zone)
          )
        )
      }
      if !operations.isEmpty { try await erase(operations, in: id, context) }
      guard entries.count == position.limit else { return }
      walk.after = entries.last
    }
  }

  private func erase(
    _ operations: [RecordOperation],
    in id: PartitionID,
    _ context: RequestContext
  ) async throws {
    let call = ModifyCall(
      service: self,
      request: ModifyRecordsRequest(operations: operations, atomic: false),
      context: context,
      user: context.reader,
      sequence: nil,
      isErasing: true
    )
    let outcome = try await write(to: id) {
      var call = call
      return try call.decide()
    }
    if let note = outcome.note { announce(note) }
  }
}

extension SchemaDifference {
  fileprivate var removedTypes: Set<String> {
    Set(changes.filter { $0.kind == .removed && $0.subject == .recordType }.map(\.name))
  }

  fileprivate var typesWithRemovedFields: Set<String> {
    Set(changes.filter { $0.kind == .removed && $0.subject == .field }.compactMap(\.recordType))
  }
}
