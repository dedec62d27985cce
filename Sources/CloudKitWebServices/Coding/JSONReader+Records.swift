import Foundation

<<<<<<< HEAD
/// What `JSONReader` can read.
package protocol JSONReadable: Decodable {
  init(reading json: inout JSONReader) throws(JSONReader.Unusual)
}

extension JSONReadable {
  /// Nil where `JSONDecoder` has to look at it.
  static func read(_ json: Data) -> Self? {
    var reader = JSONReader(json)
    do {
      let value = try Self(reading: &reader)
      try reader.end()
      return value
    } catch {
      return nil
    }
  }
}

extension ModifyRecordsRequest: JSONReadable {
  package init(reading json: inout JSONReader) throws(JSONReader.Unusual) {
    var operations: [RecordOperation]?
    self.init(operations: [])
    var members = JSONReader.Members()
    while let name = try json.next(&members) {
      switch name {
      case "operations": operations = try json.list(RecordOperation.init(reading:))
      case "zoneID": zoneID = try json.optional(ZoneID.init(reading:))
      case "atomic": atomic = try json.flag()
      case "desiredKeys": desiredKeys = try json.names()
      case "numbersAsStrings": numbersAsStrings = try json.flag()
      case "clientSequence": clientSequence = try json.optional(ClientSequence.init(reading:))
      default: _ = try json.skip()
      }
    }
    guard let operations else { throw JSONReader.Unusual() }
    self.operations = operations
  }
}

extension RecordOperation: JSONReadable {
  package init(reading json: inout JSONReader) throws(JSONReader.Unusual) {
=======
/// Records and their parts. A key that stands twice, or that few records have, is left to the decoder.
extension JSONReader {
  private mutating func set<Value>(
    _ value: inout Value?,
    _ read: (inout JSONReader) throws(Unusual) -> Value
  ) throws(Unusual) {
    guard value == nil else { throw Unusual() }
    if !null() { value = try read(&self) }
  }

  private mutating func set(_ value: inout String?) throws(Unusual) {
    try set(&value) { (reader) throws(Unusual) in try reader.string() }
  }

  private mutating func set(_ value: inout [String]?) throws(Unusual) {
    try set(&value) { (reader) throws(Unusual) in try reader.strings() }
  }

  private mutating func set(_ value: inout Bool?) throws(Unusual) {
    try set(&value) { (reader) throws(Unusual) in try reader.boolean() }
  }

  private mutating func set(_ value: inout ZoneID?) throws(Unusual) {
    try set(&value) { (reader) throws(Unusual) in try reader.zoneID() }
  }

  private mutating func strings() throws(Unusual) -> [String] {
    try array { (reader) throws(Unusual) in try reader.string() }
  }

  // MARK: Records

  /// A record, or the error in its place.
  private mutating func items() throws(Unusual) -> [ItemResult<RecordDictionary>] {
    try array { (reader) throws(Unusual) in
      try reader.value { (reader) throws(Unusual) in .success(try reader.record()) }
    }
  }

  private mutating func record() throws(Unusual) -> RecordDictionary {
    var record = RecordDictionary()
    try object { (reader, key) throws(Unusual) in
      switch key {
      case "recordName": try reader.set(&record.recordName)
      case "recordType": try reader.set(&record.recordType)
      case "recordChangeTag": try reader.set(&record.recordChangeTag)
      case "fields":
        try reader.set(&record.fields) { (reader) throws(Unusual) in try reader.fields() }
      case "zoneID": try reader.set(&record.zoneID)
      case "created":
        try reader.set(&record.created) { (reader) throws(Unusual) in try reader.stamp() }
      case "modified":
        try reader.set(&record.modified) { (reader) throws(Unusual) in try reader.stamp() }
      case "deleted": try reader.set(&record.deleted)
      case "parent":
        guard record.parent == nil, !record.removesParent else { throw Unusual() }
        if reader.null() {
          record.removesParent = true
        } else {
          record.parent = try reader.parent()
        }
      case "share":
        try reader.set(&record.share) { (reader) throws(Unusual) in try reader.reference() }
      case "shortGUID": try reader.set(&record.shortGUID)
      case "createShortGUID": try reader.set(&record.createShortGUID)
      case "serverErrorCode", "forRecord", "publicPermission", "participants", "owner",
        "currentUserParticipant", "stableUrl", "displayedHostname":
        throw Unusual()
      default: try reader.skip()
      }
    }
    return record
  }

  private mutating func stamp() throws(Unusual) -> ServerStamp {
    var timestamp: Int64?
    var userRecordName: String?
    var deviceID: String?
    try object { (reader, key) throws(Unusual) in
      switch key {
      case "timestamp":
        try reader.set(&timestamp) { (reader) throws(Unusual) in try reader.integer() }
      case "userRecordName": try reader.set(&userRecordName)
      case "deviceID": try reader.set(&deviceID)
      default: try reader.skip()
      }
    }
    guard let timestamp else { throw Unusual() }
    return ServerStamp(timestamp: timestamp, userRecordName: userRecordName, deviceID: deviceID)
  }

  private mutating func parent() throws(Unusual) -> ParentDictionary {
    let reference = try reference()
    return ParentDictionary(recordName: reference.recordName, zoneID: reference.zoneID)
  }

  private mutating func zoneID() throws(Unusual) -> ZoneID {
    var zoneName: String?
    var ownerRecordName: String?
    var zoneType: String?
    try object { (reader, key) throws(Unusual) in
      switch key {
      case "zoneName": try reader.set(&zoneName)
      case "ownerRecordName": try reader.set(&ownerRecordName)
      case "zoneType": try reader.set(&zoneType)
      case "ownerName": throw Unusual()
      default: try reader.skip()
      }
    }
    guard let zoneName else { throw Unusual() }
    return ZoneID(zoneName: zoneName, ownerRecordName: ownerRecordName, zoneType: zoneType)
  }

  private mutating func reference() throws(Unusual) -> ReferenceValue {
    var recordName: String?
    var zoneID: ZoneID?
    var action: ReferenceAction?
    try object { (reader, key) throws(Unusual) in
      switch key {
      case "recordName": try reader.set(&recordName)
      case "zoneID": try reader.set(&zoneID)
      case "action":
        try reader.set(&action) { (reader) throws(Unusual) in
          guard let action = ReferenceAction(rawValue: try reader.string()) else {
            throw Unusual()
          }
          return action
        }
      default: try reader.skip()
      }
    }
    guard let recordName else { throw Unusual() }
    return ReferenceValue(recordName: recordName, zoneID: zoneID, action: action)
  }

  // MARK: Fields

  private mutating func fields() throws(Unusual) -> [String: FieldValue] {
    var fields: [String: FieldValue] = [:]
    fields.reserveCapacity(8)
    try object { (reader, name) throws(Unusual) in
      let field = try reader.value { (reader) throws(Unusual) in try reader.field() }
      guard fields.updateValue(field, forKey: name) == nil else { throw Unusual() }
    }
    return fields
  }

  private mutating func field() throws(Unusual) -> FieldValue {
    var type: FieldType?
    var isEncrypted: Bool?
    var content: FieldContent?
    /// Where the value is, if it came before its type.
    var mark: Int?
    try object { (reader, key) throws(Unusual) in
      switch key {
      case "type":
        try reader.set(&type) { (reader) throws(Unusual) in try reader.fieldType() }
      case "isEncrypted": try reader.set(&isEncrypted)
      case "value":
        guard mark == nil, content == nil else { throw Unusual() }
        if let type {
          content = try reader.content(of: type)
        } else {
          mark = try reader.mark()
        }
      case "sealedType": throw Unusual()
      default: try reader.skip()
      }
    }
    if let mark {
      guard let type else { throw Unusual() }
      content = try reading(at: mark) { (reader) throws(Unusual) in
        try reader.content(of: type)
      }
    }
    guard let content else { throw Unusual() }
    return FieldValue(content, isEncrypted: isEncrypted ?? false)
  }

  private mutating func fieldType() throws(Unusual) -> FieldType {
    guard let type = FieldType(rawValue: try string()) else { throw Unusual() }
    return type
  }

  private mutating func content(of type: FieldType) throws(Unusual) -> FieldContent {
    switch type {
    case .string: .string(try string())
    case .int64: .int64(try integer())
    case .double: .double(try number())
    case .timestamp: .timestamp(try integer())
    case .bytes: .bytes(try bytes())
    case .reference: .reference(try reference())
    case .stringList: .stringList(try strings())
    case .int64List:
      .int64List(try array { (reader) throws(Unusual) in try reader.integer() })
    case .doubleList:
      .doubleList(try array { (reader) throws(Unusual) in try reader.number() })
    case .timestampList:
      .timestampList(try array { (reader) throws(Unusual) in try reader.integer() })
    case .bytesList: .bytesList(try array { (reader) throws(Unusual) in try reader.bytes() })
    case .referenceList:
      .referenceList(try array { (reader) throws(Unusual) in try reader.reference() })
    case .location: .location(try decoded())
    case .asset: .asset(try decoded())
    case .locationList: .locationList(try decoded())
    case .assetList: .assetList(try decoded())
    }
  }

  private mutating func bytes() throws(Unusual) -> Data {
    guard let data = Data(base64Encoded: try string()) else { throw Unusual() }
    return data
  }

  // MARK: Bodies

  fileprivate mutating func records() throws(Unusual) -> RecordsResponse {
    var records: [ItemResult<RecordDictionary>]?
    var syncToken: String?
    try object { (reader, key) throws(Unusual) in
      switch key {
      case "records":
        try reader.set(&records) { (reader) throws(Unusual) in try reader.items() }
      case "syncToken": try reader.set(&syncToken)
      default: try reader.skip()
      }
    }
    guard let records else { throw Unusual() }
    return RecordsResponse(records: records, syncToken: syncToken)
  }

  fileprivate mutating func queried() throws(Unusual) -> QueryRecordsResponse {
    var records: [ItemResult<RecordDictionary>]?
    var continuationMarker: String?
    var syncToken: String?
    try object { (reader, key) throws(Unusual) in
      switch key {
      case "records":
        try reader.set(&records) { (reader) throws(Unusual) in try reader.items() }
      case "continuationMarker": try reader.set(&continuationMarker)
      case "syncToken": try reader.set(&syncToken)
      default: try reader.skip()
      }
    }
    guard let records else { throw Unusual() }
    return QueryRecordsResponse(
      records: records,
      continuationMarker: continuationMarker,
      syncToken: syncToken
    )
  }

  fileprivate mutating func zones() throws(Unusual) -> ZoneChangesResponse {
    var zones: [ItemResult<ZoneChanges>]?
    try object { (reader, key) throws(Unusual) in
      guard key == "zones" else { return try reader.skip() }
      try reader.set(&zones) { (reader) throws(Unusual) in
        try reader.array { (reader) throws(Unusual) in
          try reader.value { (reader) throws(Unusual) in .success(try reader.changes()) }
        }
      }
    }
    guard let zones else { throw Unusual() }
    return ZoneChangesResponse(zones: zones)
  }

  private mutating func changes() throws(Unusual) -> ZoneChanges {
    var zoneID: ZoneID?
    var records: [ItemResult<RecordDictionary>]?
    var syncToken: String?
    var moreComing: Bool?
    try object { (reader, key) throws(Unusual) in
      switch key {
      case "zoneID": try reader.set(&zoneID)
      case "records":
        try reader.set(&records) { (reader) throws(Unusual) in try reader.items() }
      case "syncToken": try reader.set(&syncToken)
      case "moreComing": try reader.set(&moreComing)
      case "serverErrorCode": throw Unusual()
      default: try reader.skip()
      }
    }
    guard let records else { throw Unusual() }
    return ZoneChanges(
      zoneID: zoneID,
      records: records,
      syncToken: syncToken,
      moreComing: moreComing
    )
  }

  fileprivate mutating func modification() throws(Unusual) -> ModifyRecordsRequest {
    var operations: [RecordOperation]?
    var zoneID: ZoneID?
    var atomic: Bool?
    var desiredKeys: [String]?
    var numbersAsStrings: Bool?
    var sequence: ClientSequence?
    try object { (reader, key) throws(Unusual) in
      switch key {
      case "operations":
        try reader.set(&operations) { (reader) throws(Unusual) in
          try reader.array { (reader) throws(Unusual) in
            try reader.value { (reader) throws(Unusual) in try reader.operation() }
          }
        }
      case "zoneID": try reader.set(&zoneID)
      case "atomic": try reader.set(&atomic)
      case "desiredKeys": try reader.set(&desiredKeys)
      case "numbersAsStrings": try reader.set(&numbersAsStrings)
      case "clientSequence":
        try reader.set(&sequence) { (reader) throws(Unusual) in try reader.decoded() }
      default: try reader.skip()
      }
    }
    guard let operations else { throw Unusual() }
    return ModifyRecordsRequest(
      operations: operations,
      zoneID: zoneID,
      atomic: atomic,
      desiredKeys: desiredKeys,
      numbersAsStrings: numbersAsStrings,
      clientSequence: sequence
    )
  }

  private mutating func operation() throws(Unusual) -> RecordOperation {
>>>>>>> 73ad11c (A quick reader and writer of records, shared reads, refresh tokens, the event stream and the device flow)
    var type: RecordOperationType?
    var record: RecordDictionary?
    var desiredKeys: [String]?
    var numbersAsStrings: Bool?
<<<<<<< HEAD
    var members = JSONReader.Members()
    while let name = try json.next(&members) {
      switch name {
      case "operationType": type = try json.word(RecordOperationType.self)
      case "record": record = try RecordDictionary(reading: &json)
      case "desiredKeys": desiredKeys = try json.names()
      case "numbersAsStrings": numbersAsStrings = try json.flag()
      default: _ = try json.skip()
      }
    }
    guard let type, let record else { throw JSONReader.Unusual() }
    self.init(
=======
    try object { (reader, key) throws(Unusual) in
      switch key {
      case "operationType":
        try reader.set(&type) { (reader) throws(Unusual) in
          guard let type = RecordOperationType(rawValue: try reader.string()) else {
            throw Unusual()
          }
          return type
        }
      case "record":
        try reader.set(&record) { (reader) throws(Unusual) in try reader.record() }
      case "desiredKeys": try reader.set(&desiredKeys)
      case "numbersAsStrings": try reader.set(&numbersAsStrings)
      default: try reader.skip()
      }
    }
    guard let type, let record else { throw Unusual() }
    return RecordOperation(
>>>>>>> 73ad11c (A quick reader and writer of records, shared reads, refresh tokens, the event stream and the device flow)
      operationType: type,
      record: record,
      desiredKeys: desiredKeys,
      numbersAsStrings: numbersAsStrings
    )
  }
}

<<<<<<< HEAD
extension RecordDictionary: JSONReadable {
  package init(reading json: inout JSONReader) throws(JSONReader.Unusual) {
    self.init()
    var members = JSONReader.Members()
    while let name = try json.next(&members) {
      switch name {
      case "recordName": recordName = try json.text()
      case "recordType": recordType = try json.text()
      case "recordChangeTag": recordChangeTag = try json.text()
      case "fields": fields = try json.optional([String: FieldValue].init(reading:))
      case "zoneID": zoneID = try json.optional(ZoneID.init(reading:))
      case "created": created = try json.optional(ServerStamp.init(reading:))
      case "modified": modified = try json.optional(ServerStamp.init(reading:))
      case "deleted": deleted = try json.flag()
      case "parent":
        parent = try json.optional(ParentDictionary.init(reading:))
        removesParent = parent == nil
      case "share": share = try json.optional(ReferenceValue.init(reading:))
      case "shortGUID": shortGUID = try json.text()
      case "createShortGUID": createShortGUID = try json.flag()
      // Of shares, which are few.
      case "forRecord", "publicPermission", "participants", "owner": throw JSONReader.Unusual()
      default: _ = try json.skip()
      }
    }
  }
}

extension Dictionary: JSONReadable where Key == String, Value == FieldValue {
  package init(reading json: inout JSONReader) throws(JSONReader.Unusual) {
    self.init(minimumCapacity: 8)
    var members = JSONReader.Members.unchecked
    while let name = try json.next(&members) {
      let value = try FieldValue(reading: &json)
      guard updateValue(value, forKey: name) == nil else { throw JSONReader.Unusual() }
    }
  }
}

extension FieldValue: JSONReadable {
  package init(reading json: inout JSONReader) throws(JSONReader.Unusual) {
    self.init(.null)
    var (tag, isTagged): (String?, Bool) = (nil, false)
    var (place, isRead): (Int?, Bool) = (nil, false)
    var (isFlagged, isSealed) = (false, false)
    // There are more of these than of anything else: what comes again is noticed here.
    var members = JSONReader.Members.unchecked
    while let name = try json.next(&members) {
      switch name {
      case "type" where !isTagged:
        tag = try json.text()
        isTagged = true
      // The type often comes first, and says at once what this is.
      case "value" where isTagged && place == nil && !isRead:
        content = try json.content(tag)
        isRead = true
      case "value" where place == nil && !isRead: place = try json.skip()
      case "isEncrypted" where !isFlagged:
        isEncrypted = try json.flag() ?? false
        isFlagged = true
      case "sealedType" where !isSealed:
        sealedType = try json.text().flatMap(FieldType.init(rawValue:))
        isSealed = true
      case "type", "value", "isEncrypted", "sealedType": throw JSONReader.Unusual()
      default: _ = try json.skip()
      }
    }
    if tag?.hasPrefix("ENCRYPTED_") == true { isEncrypted = true }
    if let place {
      content = try json.reading(at: place) { (json) throws(JSONReader.Unusual) in
        try json.content(tag)
      }
    }
  }
}

extension ReferenceValue: JSONReadable {
  package init(reading json: inout JSONReader) throws(JSONReader.Unusual) {
    var recordName: String?
    var zoneID: ZoneID?
    var action: ReferenceAction?
    var members = JSONReader.Members()
    while let name = try json.next(&members) {
      switch name {
      case "recordName": recordName = try json.string()
      case "zoneID": zoneID = try json.optional(ZoneID.init(reading:))
      case "action":
        action = try json.optional { (json) throws(JSONReader.Unusual) in
          try json.word(ReferenceAction.self)
        }
      default: _ = try json.skip()
      }
    }
    guard let recordName else { throw JSONReader.Unusual() }
    self.init(recordName: recordName, zoneID: zoneID, action: action)
  }
}

extension ParentDictionary: JSONReadable {
  package init(reading json: inout JSONReader) throws(JSONReader.Unusual) {
    // A reference's action has no say here, but what is none must be refused all the same.
    let reference = try ReferenceValue(reading: &json)
    guard reference.action == nil else { throw JSONReader.Unusual() }
    self.init(recordName: reference.recordName, zoneID: reference.zoneID)
  }
}

extension ZoneID: JSONReadable {
  package init(reading json: inout JSONReader) throws(JSONReader.Unusual) {
    var zoneName: String?
    var owner: String?
    var zoneType: String?
    var members = JSONReader.Members()
    while let name = try json.next(&members) {
      switch name {
      case "zoneName": zoneName = try json.string()
      case "ownerRecordName": owner = try json.text()
      case "ownerName": throw JSONReader.Unusual()
      case "zoneType": zoneType = try json.text()
      default: _ = try json.skip()
      }
    }
    guard let zoneName else { throw JSONReader.Unusual() }
    self.init(zoneName: zoneName, ownerRecordName: owner, zoneType: zoneType)
  }
}

extension ServerStamp: JSONReadable {
  package init(reading json: inout JSONReader) throws(JSONReader.Unusual) {
    var timestamp: Int64?
    var user: String?
    var device: String?
    var members = JSONReader.Members()
    while let name = try json.next(&members) {
      switch name {
      case "timestamp": timestamp = try json.integer()
      case "userRecordName": user = try json.text()
      case "deviceID": device = try json.text()
      default: _ = try json.skip()
      }
    }
    guard let timestamp else { throw JSONReader.Unusual() }
    self.init(timestamp: timestamp, userRecordName: user, deviceID: device)
  }
}

extension ClientSequence: JSONReadable {
  package init(reading json: inout JSONReader) throws(JSONReader.Unusual) {
    var device: String?
    var sequence: Int64?
    var acknowledged: Int64?
    var members = JSONReader.Members()
    while let name = try json.next(&members) {
      switch name {
      case "device": device = try json.string()
      case "sequence": sequence = try json.integer()
      case "acknowledged": acknowledged = try json.integer()
      default: _ = try json.skip()
      }
    }
    guard let device, let sequence, let acknowledged else { throw JSONReader.Unusual() }
    self.init(device: device, sequence: sequence, acknowledged: acknowledged)
  }
}

extension JSONReader {
  fileprivate mutating func text() throws(Unusual) -> String? {
    try takesNull() ? nil : try string()
  }

  fileprivate mutating func flag() throws(Unusual) -> Bool? {
    try takesNull() ? nil : try boolean()
  }

  fileprivate mutating func names() throws(Unusual) -> [String]? {
    try takesNull() ? nil : try strings()
  }

  private mutating func strings() throws(Unusual) -> [String] {
    try list { (json) throws(Unusual) in try json.string() }
  }

  /// A field's value by its tag; without one, by what it is.
  fileprivate mutating func content(_ tag: String?) throws(Unusual) -> FieldContent {
    if try takesNull() { return .null }
    guard var tag else { return .untagged(try untagged()) }
    if tag.hasPrefix("ENCRYPTED_") { tag.removeFirst("ENCRYPTED_".count) }
    switch FieldType(tag: tag) {
    case .string: return .string(try string())
    case .int64: return .int64(try integer())
    case .double: return .double(try double())
    case .timestamp: return .timestamp(try integer())
    case .bytes: return .bytes(try base64())
    case .reference: return .reference(try ReferenceValue(reading: &self))
    case .stringList: return .stringList(try strings())
    case .int64List: return .int64List(try list { (json) throws(Unusual) in try json.integer() })
    case .doubleList: return .doubleList(try list { (json) throws(Unusual) in try json.double() })
    case .timestampList:
      return .timestampList(try list { (json) throws(Unusual) in try json.integer() })
    case .bytesList: return .bytesList(try list { (json) throws(Unusual) in try json.base64() })
    case .referenceList: return .referenceList(try list(ReferenceValue.init(reading:)))
    // Places and files, and what is no type at all.
    case .location, .locationList, .asset, .assetList, nil: throw Unusual()
    }
  }

  private mutating func base64() throws(Unusual) -> Data {
    guard let data = Data(base64Encoded: try string()) else { throw Unusual() }
    return data
  }

  private mutating func untagged() throws(Unusual) -> UntaggedValue {
    guard try peek() == UInt8(ascii: "[") else { return try scalar() }
    return .list(try list { (json) throws(Unusual) in try json.scalar() })
  }

  /// A place, a reference and a file look alike from here, and a fraction may be a whole number.
  private mutating func scalar() throws(Unusual) -> UntaggedValue {
    switch try peek() {
    case UInt8(ascii: "\""): .string(try string())
    case UInt8(ascii: "t"), UInt8(ascii: "f"): .boolean(try boolean())
    default: .integer(try integer())
    }
=======
extension RecordsResponse: JSONReadable {
  package init(from reader: inout JSONReader) throws(JSONReader.Unusual) {
    self = try reader.records()
  }
}

extension QueryRecordsResponse: JSONReadable {
  package init(from reader: inout JSONReader) throws(JSONReader.Unusual) {
    self = try reader.queried()
  }
}

extension ZoneChangesResponse: JSONReadable {
  package init(from reader: inout JSONReader) throws(JSONReader.Unusual) {
    self = try reader.zones()
  }
}

extension ModifyRecordsRequest: JSONReadable {
  package init(from reader: inout JSONReader) throws(JSONReader.Unusual) {
    self = try reader.modification()
>>>>>>> 73ad11c (A quick reader and writer of records, shared reads, refresh tokens, the event stream and the device flow)
  }
}
