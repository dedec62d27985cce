import Effects
import Foundation
import OpenCloudKit
import OpenCoreData

extension StoreMirror {
  private static let schemaBatch = 100

  /// Creates one record of each entity with all its fields, and one edge, and writes their files.
  func schemaRecords() throws -> [CloudOperation] {
    let violations = CloudKitModelRules.violations(
      of: store.schema.model,
      configuration: store.schema.configuration
    )
    guard violations.isEmpty else { throw CloudKitModelRules.error(violations) }
    var operations: [CloudOperation] = []
    var hasEdges = false
    for name in context.mapping.entityNames {
      guard let entity = context.mapping.entity(named: name) else { continue }
      hasEdges = hasEdges || !entity.manyToManys.isEmpty
      operations.append(try schemaRecord(of: entity))
    }
    if hasEdges {
      let fields = [
        MirrorNames.edgeEntityNames, MirrorNames.edgeRecordNames, MirrorNames.edgeRelationships,
      ]
      operations.append(
        CloudOperation(
          .create,
          name: schemaName(),
          recordType: MirrorNames.edgeType,
          set: FieldBag(
            Dictionary(uniqueKeysWithValues: fields.map { ($0, .string("schema")) })
          ),
          isEdge: true
        )
      )
    }
    return operations
  }

  private func schemaName() -> String {
    MirrorNames.schemaRecordPrefix + effects.uuid().uuidString
  }

  private func schemaRecord(of entity: EntityMapping) throws -> CloudOperation {
    let sample = "An example core data string"
    var fields: [String: MirrorValue] = [
      MirrorNames.entityName: .string(entity.entityName),
      MirrorNames.moveReceipt: .data(Data(sample.utf8)),
      MirrorNames.moveReceipt + MirrorNames.assetSuffix: try schemaAsset(sample),
    ]
    for attribute in entity.attributes {
      fields[attribute.field] =
        switch attribute.form {
        case .integer: .integer(1)
        case .double, .decimal: .double(1.5)
        case .date: .date(MirrorDate(milliseconds: 0))
        case .uuid: .string(effects.uuid().uuidString)
        case .url, .string: .string(sample)
        case .data: .data(Data(sample.utf8))
        }
      if let assetField = attribute.assetField { fields[assetField] = try schemaAsset(sample) }
      if let exactField = attribute.exactField { fields[exactField] = .string("1.5") }
    }
    for toOne in entity.toOnes { fields[toOne.field] = .string(effects.uuid().uuidString) }
    return CloudOperation(
      .create,
      name: schemaName(),
      recordType: entity.recordType,
      set: FieldBag(fields),
      encryptedKeys: Set(
        entity.attributes.filter(\.isEncrypted).flatMap {
          [$0.field, $0.exactField].compactMap(\.self)
        }
      )
    )
  }

  private func schemaAsset(_ text: String) throws -> MirrorValue {
    let contents = Data(text.utf8)
    let file = try context.assets.write(contents)
    return .asset(
      MirrorAsset(fingerprint: MirrorFingerprint(of: contents), file: context.assets.path(file))
    )
  }

  /// Saves the records and deletes them again.
  func initializeSchema(_ operations: [CloudOperation]) async throws {
    defer { context.assets.remove(operations.flatMap(\.files)) }
    try await cloud.saveZone(options.zone)
    let device = effects.uuid().uuidString
    var sequence: Int64 = 0
    var start = 0
    while start < operations.count {
      let slice = Array(operations[start..<min(start + Self.schemaBatch, operations.count)])
      start += slice.count
      sequence += 1
      let outcomes = try await sendSchema(
        options.zone,
        CloudBatch(device: device, sequence: sequence, operations: slice)
      )
      var deletions: [CloudOperation] = []
      for (operation, outcome) in zip(slice, outcomes) {
        guard case .saved(let tag, _) = outcome else { throw schemaError(operation, outcome) }
        deletions.append(
          CloudOperation(
            .delete,
            name: operation.name,
            recordType: operation.recordType,
            tag: tag
          )
        )
      }
      sequence += 1
      _ = try await sendSchema(
        options.zone,
        CloudBatch(device: device, sequence: sequence, operations: deletions)
      )
    }
    journal.note(
      .schema,
      .finished,
      cause: "initializeCloudKitSchema was called.",
      effect: "\(operations.count) records were saved and deleted again."
    ) { $0.saved = operations.count }
    log.setUp(storeIdentifier: store.identifier ?? "", url: store.url)
  }

  /// Sends a batch of the schema, of which no kept state says whether it was executed.
  private func sendSchema(_ zone: String, _ batch: CloudBatch) async throws -> [CloudOutcome] {
    do {
      return try await cloud.modify(zone, batch)
    } catch let repetition as RepeatedRequestFailure {
      throw repetition.failure
    }
  }

  private func schemaError(_ operation: CloudOperation, _ outcome: CloudOutcome) -> NSError {
    MirroringErrorCode.modelRefused.error(
      "The schema could not be made: the record of type \(operation.recordType) came back as "
        + "\(outcome)."
    )
  }

  /// Prints a record in CloudKit's format.
  func printSchemaRecord(_ operation: CloudOperation) {
    let zoneID = CKRecordZone.ID(zoneName: options.zone, ownerName: CKCurrentUserDefaultName)
    let record = CKRecord(
      recordType: operation.recordType,
      recordID: CKRecord.ID(recordName: operation.name, zoneID: zoneID),
      system: CKRecord.SystemFields(),
      fields: operation.set.values.mapValues {
        CKRecord.Field(CloudKitDatabase.recordValue($0, effects: effects))
      }
    )
    log.detail(0, "\(record)")
  }
}

extension CloudOperation {
  /// The files of the operation's assets.
  var files: [String] {
    self.set.values.values.compactMap { value in
      if case .asset(let asset) = value { return asset.file }
      return nil
    }
  }
}
