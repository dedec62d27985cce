import CloudKitWebServices

extension RequestContext {
  /// The error for this client: extensions only for clients that requested them, zones with their
  /// full ID, and one key that identifies its subject, as clients of the documented formats expect.
  func stripped(_ error: ErrorDictionary) -> ErrorDictionary {
    var error = error
    error.zoneID = error.zoneID.map(written)
    guard !isExtended else { return error }
    error.extension = nil
    if error.recordName != nil || error.subscriptionID != nil { error.zoneID = nil }
    return error
  }

  /// A zone's ID as in replies, also if there is no such zone.
  private func written(_ zone: ZoneID) -> ZoneID {
    let owner = zone.ownerRecordName.flatMap { ZoneID.isCaller($0) ? nil : $0 }
    return ZoneDirectory.id(
      named: zone.zoneName,
      owner: owner ?? (scope == .public ? "" : reader.encoded)
    )
  }
}

extension ErrorDictionary {
  /// The error for a path or a method that the server does not serve.
  package static let noHandler = ErrorDictionary(.notFound, "could not find handler for endpoint")
}
