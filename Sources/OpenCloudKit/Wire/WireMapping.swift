import CloudKitWebServices
import Effects
import Foundation

/// Converts between CloudKit's objects and the wire's, for one database.
package struct WireMapping: Sendable {
  /// The database of the records.
  package var scope: CKDatabase.Scope
  /// The source of the assets' identifiers.
  package var effects: Effects
  /// The origin of share links; nil where no share is read.
  package var shareOrigin: URL?

  package init(scope: CKDatabase.Scope, effects: Effects, shareOrigin: URL? = nil) {
    self.scope = scope
    self.effects = effects
    self.shareOrigin = shareOrigin
  }

  // MARK: Zones

  /// The wire's zone ID; the user's own zones have no owner on the wire.
  package func wire(_ zoneID: CKRecordZone.ID) -> ZoneID {
    ZoneID(
      zoneName: zoneID.zoneName,
      ownerRecordName: zoneID.ownerName == CKCurrentUserDefaultName ? nil : zoneID.ownerName
    )
  }

  /// The zone ID for apps: outside the shared database every zone is the user's own.
  package func zoneID(_ wire: ZoneID) -> CKRecordZone.ID {
    let owner = scope == .shared ? wire.ownerRecordName : nil
    return CKRecordZone.ID(
      zoneName: wire.zoneName.isEmpty ? ZoneID.defaultZoneName : wire.zoneName,
      ownerName: owner ?? CKCurrentUserDefaultName
    )
  }

  /// The zone of a reply.
  package func zone(_ wire: ZoneDictionary) -> CKRecordZone {
    let zoneID = zoneID(wire.zoneID)
    var capabilities: CKRecordZone.Capabilities = []
    if !wire.zoneID.isDefault {
      capabilities = [.fetchChanges, .sharing, .zoneWideSharing]
    }
    if wire.atomic ?? !wire.zoneID.isDefault { capabilities.insert(.atomic) }
    return CKRecordZone(
      zoneID: zoneID,
      capabilities: capabilities,
      share: wire.share.flatMap { reference($0, in: zoneID) }
    )
  }

  // MARK: Records

  /// The record of a reply; `zone` is the requested one, which a reply may omit.
  package func record(
    _ wire: RecordDictionary,
    in zone: CKRecordZone.ID
  ) throws(CKError) -> CKRecord {
    guard let recordID = recordID(wire, in: zone), let type = wire.recordType, !type.isEmpty else {
      throw CKError(.internalError, "The service sent a record without a name or a type.")
    }
    var fields: [String: CKRecord.Field] = [:]
    for (key, value) in wire.fields ?? [:] {
      guard let typed = self.value(value.content, in: recordID.zoneID) else { continue }
      fields[key] = CKRecord.Field(typed, isEncrypted: value.isEncrypted)
    }
    if type == CKRecord.SystemType.share {
      return share(wire, recordID: recordID, fields: fields)
    }
    return CKRecord(
      recordType: type,
      recordID: recordID,
      system: systemFields(wire, in: recordID.zoneID),
      fields: fields
    )
  }

  /// The identifier of a record in a reply.
  package func recordID(_ wire: RecordDictionary, in zone: CKRecordZone.ID) -> CKRecord.ID? {
    guard let name = wire.recordName, !name.isEmpty else { return nil }
    return CKRecord.ID(recordName: name, zoneID: wire.zoneID.map(zoneID) ?? zone)
  }

  /// The system fields of a record in a reply.
  package func systemFields(
    _ wire: RecordDictionary,
    in zone: CKRecordZone.ID
  ) -> CKRecord.SystemFields {
    var system = CKRecord.SystemFields()
    system.recordChangeTag = wire.recordChangeTag
    system.creationDate = wire.created.map { Date(wireMilliseconds: $0.timestamp) }
    system.modificationDate = wire.modified.map { Date(wireMilliseconds: $0.timestamp) }
    system.creatorUserRecordID = userRecordID(wire.created)
    system.lastModifiedUserRecordID = userRecordID(wire.modified)
    if let parent = wire.parent, !parent.recordName.isEmpty {
      let recordID = CKRecord.ID(
        recordName: parent.recordName,
        zoneID: parent.zoneID.map(zoneID) ?? zone
      )
      system.parent = CKRecord.Reference(recordID: recordID, action: .none)
    }
    system.share = wire.share.flatMap { reference($0, in: zone) }
    return system
  }

  private func userRecordID(_ stamp: ServerStamp?) -> CKRecord.ID? {
    guard let name = stamp?.userRecordName, !name.isEmpty else { return nil }
    return CKRecord.ID(recordName: name)
  }

  // MARK: Values

  /// The typed value of a field, or nil if it is null.
  func value(_ content: FieldContent, in zone: CKRecordZone.ID) -> RecordValue? {
    switch content {
    case .null: nil
    case .string(let text): .string(text)
    case .int64(let number): .int64(number)
    case .double(let number): .double(number)
    case .timestamp(let value): .date(value.date)
    case .bytes(let data): .data(data)
    case .location(let location): .location(self.location(location))
    case .reference(let reference): self.reference(reference, in: zone).map { .reference($0) }
    case .asset(let asset): .asset(self.asset(asset))
    case .stringList(let texts): .list(texts.map { .string($0) })
    case .int64List(let numbers): .list(numbers.map { .int64($0) })
    case .doubleList(let numbers): .list(numbers.map { .double($0) })
    case .timestampList(let values): .list(values.map { .date($0.date) })
    case .bytesList(let data): .list(data.map { .data($0) })
    case .locationList(let locations): .list(locations.map { .location(location($0)) })
    case .referenceList(let references):
      .list(references.compactMap { reference($0, in: zone) }.map { .reference($0) })
    case .assetList(let assets): .list(assets.map { .asset(asset($0)) })
    case .unknownList: .list([])
    case .untagged(let value): untagged(value, in: zone)
    }
  }

  /// The value of a field without a type.
  ///
  /// Watershed's replies always have types; other servers' may not.
  private func untagged(_ value: UntaggedValue, in zone: CKRecordZone.ID) -> RecordValue? {
    switch value {
    case .string(let text): .string(text)
    case .integer(let number): .int64(number)
    case .fraction(let number): .double(number)
    case .boolean(let flag): .int64(flag ? 1 : 0)
    case .location(let location): .location(self.location(location))
    case .reference(let reference): self.reference(reference, in: zone).map { .reference($0) }
    case .asset(let asset): .asset(self.asset(asset))
    case .list(let elements): .list(elements.compactMap { untagged($0, in: zone) })
    }
  }

  private func location(_ wire: LocationValue) -> CLLocation {
    var fields = CLLocation.Fields(
      latitude: wire.latitude,
      longitude: wire.longitude,
      timestamp: Date(wireMilliseconds: wire.timestamp ?? 0)
    )
    fields.altitude = wire.altitude ?? 0
    fields.horizontalAccuracy = wire.horizontalAccuracy ?? 0
    fields.verticalAccuracy = wire.verticalAccuracy ?? -1
    fields.course = wire.course ?? -1
    fields.speed = wire.speed ?? -1
    return CLLocation(fields: fields)
  }

  private func reference(
    _ wire: ReferenceValue,
    in zone: CKRecordZone.ID
  ) -> CKRecord.Reference? {
    guard !wire.recordName.isEmpty else { return nil }
    let zoneID = wire.zoneID.map { self.zoneID($0) } ?? zone
    return CKRecord.Reference(
      recordID: CKRecord.ID(recordName: wire.recordName, zoneID: zoneID),
      action: wire.action == .deleteSelf ? .deleteSelf : .none
    )
  }

  private func asset(_ wire: AssetValue) -> CKAsset {
    CKAsset(
      fileURL: nil,
      storedFile: wire.fileChecksum.map { checksum in
        var file = CKAsset.StoredFile(fileChecksum: checksum, size: wire.size ?? 0)
        file.receipt = wire.receipt
        file.wrappingKey = wire.wrappingKey
        file.referenceChecksum = wire.referenceChecksum
        file.downloadURL = wire.downloadURL
        return file
      },
      uuid: effects.uuid()
    )
  }
}
