import CloudKitWebServices

/// The parts of a request's body that the log of requests shows: names, and no values.
protocol LoggedBody {
  var loggedTypes: [String?] { get }
  var loggedZones: [ZoneID?] { get }
  var loggedItems: Int? { get }
}

extension LoggedBody {
  var loggedTypes: [String?] { [] }
  var loggedItems: Int? { nil }
}

extension ModifyRecordsRequest: LoggedBody {
  var loggedTypes: [String?] { operations.map { $0.record.recordType } }
  var loggedZones: [ZoneID?] { [zoneID] + operations.map { $0.record.zoneID } }
  var loggedItems: Int? { operations.count }
}

extension LookupRecordsRequest: LoggedBody {
  var loggedZones: [ZoneID?] { [zoneID] }
  var loggedItems: Int? { records.count }
}

extension QueryRecordsRequest: LoggedBody {
  var loggedTypes: [String?] { [query.recordType] }
  var loggedZones: [ZoneID?] { [zoneID] }
}

extension ZoneChangesRequest: LoggedBody {
  var loggedZones: [ZoneID?] { zones.map { $0.zoneID } }
}

extension ModifyZonesRequest: LoggedBody {
  var loggedZones: [ZoneID?] { operations.map { $0.zone.zoneID } }
  var loggedItems: Int? { operations.count }
}

extension UploadTokensRequest: LoggedBody {
  var loggedTypes: [String?] { tokens.map { $0.recordType } }
  var loggedZones: [ZoneID?] { [zoneID] }
  var loggedItems: Int? { tokens.count }
}
