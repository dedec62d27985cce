import Foundation

/// A type that `JSONReader` can decode.
package protocol JSONReadable: Decodable {
  init(reading json: inout JSONReader) throws(JSONReader.FallbackToJSONDecoder)
}

extension JSONReadable {
  /// Decodes a value; nil if only `JSONDecoder` can decode it.
  static func read(_ json: Data, _ origin: WireCoding.Origin = .wire) -> Self? {
    var reader = JSONReader(json, origin)
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
  package init(reading json: inout JSONReader) throws(JSONReader.FallbackToJSONDecoder) {
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
    guard let operations else { throw JSONReader.FallbackToJSONDecoder() }
    self.operations = operations
  }
}

extension ZoneChangesRequest: JSONReadable {
  package init(reading json: inout JSONReader) throws(JSONReader.FallbackToJSONDecoder) {
    var zones: [ZoneChangesOptions]?
    self.init(zones: [])
    var members = JSONReader.Members()
    while let name = try json.next(&members) {
      switch name {
      case "zones": zones = try json.list(ZoneChangesOptions.init(reading:))
      default: try feed.read(name, from: &json)
      }
    }
    guard let zones else { throw JSONReader.FallbackToJSONDecoder() }
    self.zones = zones
  }
}

extension ZoneChangesOptions: JSONReadable {
  package init(reading json: inout JSONReader) throws(JSONReader.FallbackToJSONDecoder) {
    var zoneID: ZoneID?
    self.init(zoneID: .defaultZone)
    var members = JSONReader.Members()
    while let name = try json.next(&members) {
      switch name {
      case "zoneID": zoneID = try ZoneID(reading: &json)
      case "syncToken": syncToken = try json.text()
      default: try feed.read(name, from: &json)
      }
    }
    guard let zoneID else { throw JSONReader.FallbackToJSONDecoder() }
    self.zoneID = zoneID
  }
}

extension FeedOptions {
  /// Reads a member of the object that contains the options; a member of another type is skipped.
  fileprivate mutating func read(
    _ name: String,
    from json: inout JSONReader
  ) throws(JSONReader.FallbackToJSONDecoder) {
    switch name {
    case "desiredKeys": desiredKeys = try json.names()
    case "desiredRecordTypes": desiredRecordTypes = try json.names()
    case "reverse": reverse = try json.flag()
    case "numbersAsStrings": numbersAsStrings = try json.flag()
    case "includesDeleted": includesDeleted = try json.flag()
    case "resultsLimit":
      resultsLimit = try json.optional { (json) throws(JSONReader.FallbackToJSONDecoder) in
        Int(try json.integer())
      }
    case "numberAsStrings": throw JSONReader.FallbackToJSONDecoder()
    default: _ = try json.skip()
    }
  }
}

extension RecordOperation: JSONReadable {
  package init(reading json: inout JSONReader) throws(JSONReader.FallbackToJSONDecoder) {
    var type: RecordOperationType?
    var record: RecordDictionary?
    var desiredKeys: [String]?
    var numbersAsStrings: Bool?
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
    guard let type, let record else { throw JSONReader.FallbackToJSONDecoder() }
    self.init(
      operationType: type,
      record: record,
      desiredKeys: desiredKeys,
      numbersAsStrings: numbersAsStrings
    )
  }
}

extension RecordDictionary: JSONReadable {
  package init(reading json: inout JSONReader) throws(JSONReader.FallbackToJSONDecoder) {
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
      default:
        guard !RecordMember.needingDecoder.contains(name) else {
          throw JSONReader.FallbackToJSONDecoder()
        }
        _ = try json.skip()
      }
    }
  }
}

extension Dictionary: JSONReadable where Key == String, Value == FieldValue {
  package init(reading json: inout JSONReader) throws(JSONReader.FallbackToJSONDecoder) {
    self.init(minimumCapacity: 8)
    var members = JSONReader.Members.unchecked
    while let name = try json.next(&members) {
      let known = count
      self[name] = try FieldValue(reading: &json)
      guard count > known else { throw JSONReader.FallbackToJSONDecoder() }
    }
  }
}

extension FieldValue: JSONReadable {
  package init(reading json: inout JSONReader) throws(JSONReader.FallbackToJSONDecoder) {
    self.init(.null)
    var (tag, isTagged): (String?, Bool) = (nil, false)
    var (place, isRead): (Int?, Bool) = (nil, false)
    var (isFlagged, isSealed) = (false, false)
    var exactPlace: Int?
    // Fields are the most frequent objects, so repeated names are detected here without a list.
    var members = JSONReader.Members.unchecked
    while let name = try json.next(&members) {
      switch name {
      case "type" where !isTagged:
        tag = try json.text()
        isTagged = true
      // If the type came first, the value is decoded directly.
      case "value" where isTagged && place == nil && !isRead:
        content = try json.content(tag)
        isRead = true
      case "value" where place == nil && !isRead: place = try json.skip()
      case "isEncrypted" where !isFlagged:
        isEncrypted = try json.flag() ?? false
        isFlagged = true
      case "sealedType" where !isSealed && json.origin == .storage:
        sealedType = try json.text().flatMap(FieldType.init(rawValue:))
        isSealed = true
      case "secondsSince2001" where exactPlace == nil: exactPlace = try json.skip()
      case "type", "value", "isEncrypted", "sealedType", "secondsSince2001":
        throw JSONReader.FallbackToJSONDecoder()
      default: _ = try json.skip()
      }
    }
    if tag?.hasPrefix("ENCRYPTED_") == true { isEncrypted = true }
    if let place {
      content = try json.reading(at: place) { (json) throws(JSONReader.FallbackToJSONDecoder) in
        try json.content(tag)
      }
    }
    guard let exactPlace else { return }
    let exact = try json.reading(at: exactPlace) {
      (json) throws(JSONReader.FallbackToJSONDecoder) in
      try json.exactDates(of: content)
    }
    if let exact { content = content.with(exact) }
  }
}

extension ReferenceValue: JSONReadable {
  package init(reading json: inout JSONReader) throws(JSONReader.FallbackToJSONDecoder) {
    var recordName: String?
    var zoneID: ZoneID?
    var action: ReferenceAction?
    var members = JSONReader.Members()
    while let name = try json.next(&members) {
      switch name {
      case "recordName": recordName = try json.string()
      case "zoneID": zoneID = try json.optional(ZoneID.init(reading:))
      case "action":
        action = try json.optional { (json) throws(JSONReader.FallbackToJSONDecoder) in
          try json.word(ReferenceAction.self)
        }
      default: _ = try json.skip()
      }
    }
    guard let recordName else { throw JSONReader.FallbackToJSONDecoder() }
    self.init(recordName: recordName, zoneID: zoneID, action: action)
  }
}

extension ParentDictionary: JSONReadable {
  package init(reading json: inout JSONReader) throws(JSONReader.FallbackToJSONDecoder) {
    // A parent has no action, but an invalid one must be refused.
    let reference = try ReferenceValue(reading: &json)
    guard reference.action == nil else { throw JSONReader.FallbackToJSONDecoder() }
    self.init(recordName: reference.recordName, zoneID: reference.zoneID)
  }
}

extension ZoneID: JSONReadable {
  package init(reading json: inout JSONReader) throws(JSONReader.FallbackToJSONDecoder) {
    var zoneName: String?
    var owner: String?
    var zoneType: String?
    var members = JSONReader.Members()
    while let name = try json.next(&members) {
      switch name {
      case "zoneName": zoneName = try json.string()
      case "ownerRecordName": owner = try json.text()
      case "ownerName": throw JSONReader.FallbackToJSONDecoder()
      case "zoneType": zoneType = try json.text()
      default: _ = try json.skip()
      }
    }
    guard let zoneName else { throw JSONReader.FallbackToJSONDecoder() }
    self.init(zoneName: zoneName, ownerRecordName: owner, zoneType: zoneType)
  }
}

extension ServerStamp: JSONReadable {
  package init(reading json: inout JSONReader) throws(JSONReader.FallbackToJSONDecoder) {
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
    guard let timestamp else { throw JSONReader.FallbackToJSONDecoder() }
    self.init(timestamp: timestamp, userRecordName: user, deviceID: device)
  }
}

extension ClientSequence: JSONReadable {
  package init(reading json: inout JSONReader) throws(JSONReader.FallbackToJSONDecoder) {
    var device: String?
    var sequence: Int64?
    var acknowledged: Int64?
    var finishedDevice: String?
    var members = JSONReader.Members()
    while let name = try json.next(&members) {
      switch name {
      case "device": device = try json.string()
      case "sequence": sequence = try json.integer()
      case "acknowledged": acknowledged = try json.integer()
      case "finishedDevice": finishedDevice = try json.text()
      default: _ = try json.skip()
      }
    }
    guard let device, let sequence, let acknowledged else {
      throw JSONReader.FallbackToJSONDecoder()
    }
    self.init(
      device: device,
      sequence: sequence,
      acknowledged: acknowledged,
      finishedDevice: finishedDevice
    )
    // `JSONDecoder` reports which value is out of range.
    guard isValid else { throw JSONReader.FallbackToJSONDecoder() }
  }
}

extension JSONReader {
  fileprivate mutating func text() throws(FallbackToJSONDecoder) -> String? {
    try takesNull() ? nil : try string()
  }

  fileprivate mutating func flag() throws(FallbackToJSONDecoder) -> Bool? {
    try takesNull() ? nil : try boolean()
  }

  fileprivate mutating func names() throws(FallbackToJSONDecoder) -> [String]? {
    try takesNull() ? nil : try strings()
  }

  private mutating func strings() throws(FallbackToJSONDecoder) -> [String] {
    try list { (json) throws(FallbackToJSONDecoder) in try json.string() }
  }

  /// A field's value by its type tag; without a tag, by its JSON type.
  fileprivate mutating func content(_ tag: String?) throws(FallbackToJSONDecoder) -> FieldContent {
    if try takesNull() { return .null }
    guard var tag else { return .untagged(try untagged()) }
    if tag.hasPrefix("ENCRYPTED_") { tag.removeFirst("ENCRYPTED_".count) }
    switch FieldType(tag: tag) {
    case .string: return .string(try string())
    case .int64: return .int64(try integer())
    case .double: return .double(try double())
    case .timestamp: return .timestamp(TimestampValue(milliseconds: try integer()))
    case .bytes: return .bytes(try base64())
    case .reference: return .reference(try ReferenceValue(reading: &self))
    case .stringList: return .stringList(try strings())
    case .int64List:
      return .int64List(try list { (json) throws(FallbackToJSONDecoder) in try json.integer() })
    case .doubleList:
      return .doubleList(try list { (json) throws(FallbackToJSONDecoder) in try json.double() })
    case .timestampList:
      return .timestampList(
        try list { (json) throws(FallbackToJSONDecoder) in
          TimestampValue(milliseconds: try json.integer())
        }
      )
    case .bytesList:
      return .bytesList(try list { (json) throws(FallbackToJSONDecoder) in try json.base64() })
    case .referenceList: return .referenceList(try list(ReferenceValue.init(reading:)))
    // Locations and assets, and unknown types.
    case .location, .locationList, .asset, .assetList, nil: throw FallbackToJSONDecoder()
    }
  }

  /// The exact dates of a field of dates; of another field they have no meaning.
  fileprivate mutating func exactDates(
    of content: FieldContent
  ) throws(FallbackToJSONDecoder) -> ExactDates? {
    switch content {
    case .timestamp: return try takesNull() ? nil : .one(try double())
    case .timestampList:
      guard try !takesNull() else { return nil }
      return .list(
        try list { (json) throws(FallbackToJSONDecoder) in
          try json.takesNull() ? nil : try json.double()
        }
      )
    default: return nil
    }
  }

  private mutating func base64() throws(FallbackToJSONDecoder) -> Data {
    guard let data = Data(base64Encoded: try string()) else { throw FallbackToJSONDecoder() }
    return data
  }

  private mutating func untagged() throws(FallbackToJSONDecoder) -> UntaggedValue {
    guard try peek() == UInt8(ascii: "[") else { return try scalar() }
    return .list(try list { (json) throws(FallbackToJSONDecoder) in try json.scalar() })
  }

  /// Locations, references and assets are all objects.
  private mutating func scalar() throws(FallbackToJSONDecoder) -> UntaggedValue {
    switch try peek() {
    case UInt8(ascii: "\""): .string(try string())
    case UInt8(ascii: "t"), UInt8(ascii: "f"): .boolean(try boolean())
    default: try untaggedNumber()
    }
  }
}
