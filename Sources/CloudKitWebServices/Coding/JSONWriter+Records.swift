import Foundation

/// Writes records and their parts with sorted keys.
extension JSONWriter {
  package mutating func fields(
    _ fields: [String: FieldValue],
    numbersAsStrings: Bool = false
  ) {
    beginObject()
    // Sorts indices, since values are large and expensive to move.
    let (names, values) = (fields.keys, fields.values)
    for place in fields.indices.sorted(by: { names[$0] < names[$1] }) {
      key(names[place])
      field(values[place], numbersAsStrings)
    }
    endObject()
  }

  package mutating func record(_ record: RecordDictionary) {
    let sharing = record.sharing
    beginObject()
    member("blocked", sharing?.blocked)
    if let asked = record.createShortGUID {
      key("createShortGUID")
      boolean(asked)
    }
    if let stamp = record.created { member("created", stamp) }
    member("currentUserParticipant", sharing?.currentUserParticipant)
    if let deleted = record.deleted {
      key("deleted")
      boolean(deleted)
    }
    member("denyAccessRequests", sharing?.denyAccessRequests)
    member("displayedHostname", sharing?.displayedHostname)
    if let fields = record.fields {
      key("fields")
      self.fields(fields, numbersAsStrings: record.writesNumbersAsStrings)
    }
    member("forRecord", sharing?.forRecord)
    if let stamp = record.modified { member("modified", stamp) }
    member("owner", sharing?.owner)
    if let parent = record.parent {
      key("parent")
      beginObject()
      member("recordName", parent.recordName)
      if let zone = parent.zoneID { member("zoneID", zone) }
      endObject()
    } else if record.removesParent {
      key("parent")
      null()
    }
    member("participants", sharing?.participants)
    if record.hasPluginFields {
      key("pluginFields")
      beginObject()
      endObject()
    }
    member("publicPermission", sharing?.publicPermission)
    member("recordChangeTag", record.recordChangeTag)
    member("recordName", record.recordName)
    member("recordType", record.recordType)
    member("requesters", sharing?.requesters)
    if let share = record.share {
      key("share")
      reference(share)
    }
    member("sharingBase", sharing?.sharingBase)
    member("shortGUID", record.shortGUID)
    member("stableUrl", sharing?.stableUrl)
    if let zone = record.zoneID { member("zoneID", zone) }
    endObject()
  }

  /// The members of shares, which are too rare for a writer of their own.
  private mutating func member(_ name: String, _ value: (some Encodable)?) {
    guard let value, let json = try? WireCoding.encode(value) else { return }
    key(name)
    encoded(json)
  }

  package mutating func member(_ name: String, _ text: String?) {
    guard let text else { return }
    key(name)
    string(text)
  }

  package mutating func member(_ name: String, _ zone: ZoneID) {
    key(name)
    self.zone(zone)
  }

  package mutating func zone(_ zone: ZoneID) {
    beginObject()
    member("ownerRecordName", zone.ownerRecordName)
    member("zoneName", zone.zoneName)
    member("zoneType", zone.zoneType)
    endObject()
  }

  private mutating func member(_ name: String, _ stamp: ServerStamp) {
    key(name)
    beginObject()
    member("deviceID", stamp.deviceID)
    key("timestamp")
    integer(stamp.timestamp)
    member("userRecordName", stamp.userRecordName)
    endObject()
  }

  private mutating func member(_ name: String, _ number: Double?) {
    guard let number else { return }
    key(name)
    self.number(number)
  }

  // MARK: Fields

  package mutating func field(_ value: FieldValue, _ numbersAsStrings: Bool) {
    beginObject()
    if value.isEncrypted {
      key("isEncrypted")
      boolean(true)
    }
    member("sealedType", value.sealedType?.rawValue)
    if let exact = value.content.secondsSince2001 {
      key("secondsSince2001")
      exactDates(exact)
    }
    member("type", value.content.type?.rawValue ?? (isUnknownList(value) ? "UNKNOWN_LIST" : nil))
    key("value")
    content(value.content, numbersAsStrings)
    endObject()
  }

  private func isUnknownList(_ value: FieldValue) -> Bool { value.content == .unknownList }

  private mutating func content(_ content: FieldContent, _ asStrings: Bool) {
    switch content {
    case .null: null()
    case .string(let value): string(value)
    case .int64(let value): integer(value, asStrings)
    case .timestamp(let value): integer(value.milliseconds, asStrings)
    case .double(let value): number(value, asStrings)
    case .bytes(let value): string(value.base64EncodedString())
    case .location(let value): location(value)
    case .reference(let value): reference(value)
    case .asset(let value): asset(value)
    case .stringList(let values): list(values) { $0.string($1) }
    case .int64List(let values): list(values) { $0.integer($1, asStrings) }
    case .timestampList(let values): list(values) { $0.integer($1.milliseconds, asStrings) }
    case .doubleList(let values): list(values) { $0.number($1, asStrings) }
    case .bytesList(let values): list(values) { $0.string($1.base64EncodedString()) }
    case .locationList(let values): list(values) { $0.location($1) }
    case .referenceList(let values): list(values) { $0.reference($1) }
    case .assetList(let values): list(values) { $0.asset($1) }
    case .unknownList: list([String]()) { $0.string($1) }
    case .untagged(let value):
      // An untagged value occurs in requests only; the generic encoder handles it.
      if let json = try? WireCoding.encode(value) { encoded(json) } else { null() }
    }
  }

  private mutating func exactDates(_ exact: ExactDates) {
    switch exact {
    case .one(let seconds): number(seconds)
    case .list(let all):
      list(all) { json, seconds in
        if let seconds { json.number(seconds) } else { json.null() }
      }
    }
  }

  private mutating func list<Element>(
    _ values: [Element],
    _ write: (inout JSONWriter, Element) -> Void
  ) {
    beginArray()
    for value in values { write(&self, value) }
    endArray()
  }

  private mutating func integer(_ value: Int64, _ asString: Bool) {
    if asString { string(String(value)) } else { integer(value) }
  }

  private mutating func number(_ value: Double, _ asString: Bool) {
    if asString { string(String(value)) } else { number(value) }
  }

  private mutating func location(_ value: LocationValue) {
    beginObject()
    member("altitude", value.altitude)
    member("course", value.course)
    member("horizontalAccuracy", value.horizontalAccuracy)
    member("latitude", value.latitude)
    member("longitude", value.longitude)
    member("speed", value.speed)
    if let timestamp = value.timestamp {
      key("timestamp")
      integer(timestamp)
    }
    member("verticalAccuracy", value.verticalAccuracy)
    endObject()
  }

  private mutating func reference(_ value: ReferenceValue) {
    beginObject()
    member("action", value.action?.rawValue)
    member("recordName", value.recordName)
    if let zone = value.zoneID { member("zoneID", zone) }
    endObject()
  }

  private mutating func asset(_ value: AssetValue) {
    beginObject()
    member("blob", value.blob)
    member("downloadURL", value.downloadURL)
    member("fileChecksum", value.fileChecksum)
    member("receipt", value.receipt)
    member("referenceChecksum", value.referenceChecksum)
    if let size = value.size {
      key("size")
      integer(size)
    }
    member("wrappingKey", value.wrappingKey)
    endObject()
  }
}
