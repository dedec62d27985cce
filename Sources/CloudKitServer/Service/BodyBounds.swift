import CloudKitWebServices

/// The bounds of all bodies of requests, derived from the limits once.
///
/// They are checked before a body is decoded. Where the service has an exact limit later, whose
/// error may be that of one item, an array may have twice as many elements, and a name the bytes of
/// its longest spelling.
struct BodyBounds: Sendable {
  private let common: JSONBounds
  private let query: JSONBounds
  private let subscriptions: JSONBounds

  init(_ limits: ServiceLimits) {
    common = limits.bounds()
    query = limits.bounds(queries: 2)
    subscriptions = limits.bounds(queries: 10)
  }

  /// The bounds of an endpoint's body; nil for calls about accounts and of administrators.
  subscript(endpoint: Endpoint?) -> JSONBounds {
    switch endpoint {
    case .queryRecords: query
    case .modifySubscriptions: subscriptions
    default: common
    }
  }
}

extension ServiceLimits {
  /// The sizes of all arrays of a body; `queries` is the number of whole queries whose values a body
  /// may have, if it has any.
  fileprivate func bounds(queries: Int? = nil) -> JSONBounds {
    var arrays = [String: JSONBounds.ArrayLimit](minimumCapacity: 32)
    for name in [
      "operations", "records", "zones", "tokens", "assets", "shortGUIDs", "subscriptions", "users",
      "lookupInfos",
    ] {
      arrays[name] = .init(itemsPerRequest)
    }
    for name in ["desiredKeys", "desiredRecordTypes", "rootRecordDesiredKeys"] {
      arrays[name] = .init(keysPerRequest)
    }
    // An element of a list counts at least four bytes for the size of a record.
    arrays["value"] = .init(recordSize / 4)
    // An edit names those who are participants and those to be invited.
    arrays["participants"] = .init(2 * (participantsPerShare + 1), inAll: participantsPerRequest)
    arrays["requesters"] = .init(2 * requestersPerShare, inAll: participantsPerRequest)
    arrays["blocked"] = .init(2 * blockedPerShare, inAll: 2 * blockedPerShare)
    if let queries {
      arrays["filterBy"] = .init(2 * clausesPerQuery)
      arrays["sortBy"] = .init(2 * clausesPerQuery)
      // A record's field may have the name of a filter's member, so it is limited only here.
      for name in ["fieldValue.value", "fieldValue"] {
        arrays[name] = .init(2 * valuesPerFilter, inAll: queries * valuesPerQuery)
      }
    }
    var bounds = JSONBounds(
      arrays: arrays,
      otherArrays: elementsPerArray,
      values: valuesPerRequest
    )
    bounds.names = [
      "recordName", "recordType", "zoneName", "ownerRecordName", "userRecordName", "fieldName",
      "systemFieldName", "desiredKeys", "desiredRecordTypes", "rootRecordDesiredKeys",
      "subscriptionID", "shortGUIDs", "emailAddress", "phoneNumber",
    ]
    // A character takes up to twelve bytes in JSON: two escaped code units.
    bounds.nameBytes = 12 * nameLength
    return bounds
  }
}
