import Foundation

/// The replies that clients decode most often. A record with an asset, a share or an error in its
/// place is decoded by `JSONDecoder` alone, without the whole reply.
extension JSONReader {
  fileprivate mutating func items() throws(Unusual) -> [ItemResult<RecordDictionary>] {
    try list { (json) throws(Unusual) in
      try json.value { (json) throws(Unusual) in
        .success(try RecordDictionary(reading: &json))
      }
    }
  }

  fileprivate mutating func optionalString() throws(Unusual) -> String? {
    try takesNull() ? nil : try string()
  }
}

extension RecordsResponse: JSONReadable {
  package init(reading json: inout JSONReader) throws(JSONReader.Unusual) {
    var records: [ItemResult<RecordDictionary>]?
    var syncToken: String?
    var members = JSONReader.Members()
    while let name = try json.next(&members) {
      switch name {
      case "records": records = try json.items()
      case "syncToken": syncToken = try json.optionalString()
      default: _ = try json.skip()
      }
    }
    guard let records else { throw JSONReader.Unusual() }
    self.init(records: records, syncToken: syncToken)
  }
}

extension QueryRecordsResponse: JSONReadable {
  package init(reading json: inout JSONReader) throws(JSONReader.Unusual) {
    var records: [ItemResult<RecordDictionary>]?
    var continuationMarker: String?
    var syncToken: String?
    var members = JSONReader.Members()
    while let name = try json.next(&members) {
      switch name {
      case "records": records = try json.items()
      case "continuationMarker": continuationMarker = try json.optionalString()
      case "syncToken": syncToken = try json.optionalString()
      default: _ = try json.skip()
      }
    }
    guard let records else { throw JSONReader.Unusual() }
    self.init(records: records, continuationMarker: continuationMarker, syncToken: syncToken)
  }
}

extension ZoneChangesResponse: JSONReadable {
  package init(reading json: inout JSONReader) throws(JSONReader.Unusual) {
    var zones: [ItemResult<ZoneChanges>]?
    var members = JSONReader.Members()
    while let name = try json.next(&members) {
      guard name == "zones" else {
        _ = try json.skip()
        continue
      }
      zones = try json.list { (json) throws(JSONReader.Unusual) in
        try json.value { (json) throws(JSONReader.Unusual) in
          .success(try ZoneChanges(reading: &json))
        }
      }
    }
    guard let zones else { throw JSONReader.Unusual() }
    self.init(zones: zones)
  }
}

extension ZoneChanges: JSONReadable {
  package init(reading json: inout JSONReader) throws(JSONReader.Unusual) {
    var zoneID: ZoneID?
    var records: [ItemResult<RecordDictionary>]?
    var syncToken: String?
    var moreComing: Bool?
    var members = JSONReader.Members()
    while let name = try json.next(&members) {
      switch name {
      case "zoneID": zoneID = try json.optional(ZoneID.init(reading:))
      case "records": records = try json.items()
      case "syncToken": syncToken = try json.optionalString()
      case "moreComing": moreComing = try json.takesNull() ? nil : try json.boolean()
      case "serverErrorCode": throw JSONReader.Unusual()
      default: _ = try json.skip()
      }
    }
    guard let records else { throw JSONReader.Unusual() }
    self.init(zoneID: zoneID, records: records, syncToken: syncToken, moreComing: moreComing)
  }
}
