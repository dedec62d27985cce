import Foundation

/// The replies that clients decode most often. A record with an asset, a share or an error in its
/// place is decoded by `JSONDecoder` alone, without the whole reply.
extension JSONReader {
  fileprivate mutating func items() throws(FallbackToJSONDecoder) -> [ItemResult<RecordDictionary>]
  {
    try list { (json) throws(FallbackToJSONDecoder) in
      try json.value { (json) throws(FallbackToJSONDecoder) in
        .success(try RecordDictionary(reading: &json))
      }
    }
  }

  fileprivate mutating func optionalString() throws(FallbackToJSONDecoder) -> String? {
    try takesNull() ? nil : try string()
  }
}

extension RecordsResponse: JSONReadable {
  package init(reading json: inout JSONReader) throws(JSONReader.FallbackToJSONDecoder) {
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
    guard let records else { throw JSONReader.FallbackToJSONDecoder() }
    self.init(records: records, syncToken: syncToken)
  }
}

extension QueryRecordsResponse: JSONReadable {
  package init(reading json: inout JSONReader) throws(JSONReader.FallbackToJSONDecoder) {
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
    guard let records else { throw JSONReader.FallbackToJSONDecoder() }
    self.init(records: records, continuationMarker: continuationMarker, syncToken: syncToken)
  }
}

extension ZoneChangesResponse: JSONReadable {
  package init(reading json: inout JSONReader) throws(JSONReader.FallbackToJSONDecoder) {
    var zones: [ItemResult<ZoneChanges>]?
    var members = JSONReader.Members()
    while let name = try json.next(&members) {
      guard name == "zones" else {
        _ = try json.skip()
        continue
      }
      zones = try json.list { (json) throws(JSONReader.FallbackToJSONDecoder) in
        try json.value { (json) throws(JSONReader.FallbackToJSONDecoder) in
          .success(try ZoneChanges(reading: &json))
        }
      }
    }
    guard let zones else { throw JSONReader.FallbackToJSONDecoder() }
    self.init(zones: zones)
  }
}

extension ZoneChanges: JSONReadable {
  package init(reading json: inout JSONReader) throws(JSONReader.FallbackToJSONDecoder) {
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
      case "serverErrorCode": throw JSONReader.FallbackToJSONDecoder()
      default: _ = try json.skip()
      }
    }
    guard let records else { throw JSONReader.FallbackToJSONDecoder() }
    self.init(zoneID: zoneID, records: records, syncToken: syncToken, moreComing: moreComing)
  }
}
