import CloudKitWebServices

extension ServiceLimits {
  /// The sizes of all arrays of an endpoint's requests; nil for calls about accounts and of
  /// administrators.
  ///
  /// They are checked before a body is decoded. Where the service has an exact limit later, whose
  /// error may be that of one item, the array may have twice as many elements.
  func bounds(of endpoint: Endpoint?) -> JSONBounds {
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
    switch endpoint {
    case .queryRecords, .modifySubscriptions:
      arrays["filterBy"] = .init(2 * clausesPerQuery)
      arrays["sortBy"] = .init(2 * clausesPerQuery)
      // A record's field may have the name of a filter's member, so it is limited only here.
      let queries = endpoint == .queryRecords ? 2 : 10
      arrays["fieldValue.value"] = .init(2 * valuesPerFilter, inAll: queries * valuesPerQuery)
    default: break
    }
    return JSONBounds(arrays: arrays, otherArrays: elementsPerArray, values: valuesPerRequest)
  }
}
