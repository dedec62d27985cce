import CloudKitWebServices

/// The matrix's request to each endpoint; `$zone` is the owner's zone, `$guid` the share's short
/// ID.
extension Endpoint {
  /// The request of the matrix's rows: for the owner's zone and its shared record, and in the
  /// public database for the owner's letter, which only its creator may read.
  func matrixBody(in scope: DatabaseScope) -> String {
    let isPublic = scope == .public
    return switch self {
    case .queryRecords:
      isPublic
        ? #"{"query":{"recordType":"Letter","filterBy":[{"comparator":"EQUALS","fieldName":"n","#
          + #""fieldValue":{"value":7}}]}}"#
        : #"{"query":{"recordType":"Note","filterBy":[{"comparator":"EQUALS","fieldName":"title","#
          + #""fieldValue":{"value":"Root"}}]},"zoneID":$zone}"#
    case .modifyRecords:
      isPublic
        ? #"{"operations":[{"operationType":"forceUpdate","record":{"recordName":"letter","#
          + #""recordType":"Letter"}}]}"#
        : #"{"operations":[{"operationType":"forceUpdate","record":{"recordName":"a","#
          + #""recordType":"Note"}}],"zoneID":$zone}"#
    case .lookupRecords:
      isPublic
        ? #"{"records":[{"recordName":"letter"}]}"#
        : #"{"records":[{"recordName":"a"}],"zoneID":$zone}"#
    case .changedRecords: #"{"zoneID":$zone}"#
    case .resolveShares, .acceptShares, .requestAccess: #"{"shortGUIDs":[{"value":"$guid"}]}"#
    case .lookupZones: #"{"zones":[$zone]}"#
    case .modifyZones:
      #"{"operations":[{"operationType":"create","zone":{"zoneID":{"zoneName":"mine"}}}]}"#
    case .zoneChanges: #"{"zones":[{"zoneID":$zone}]}"#
    case .lookupSubscriptions: #"{"subscriptions":[{"subscriptionID":"db"}]}"#
    case .modifySubscriptions:
      #"{"operations":[{"operationType":"create","subscription":{"subscriptionID":"mine","#
        + #""subscriptionType":"zone","zoneID":$zone}}]}"#
    case .lookupUsersByEmail: #"{"users":[{"emailAddress":"ada@example.com"}]}"#
    case .lookupUsersByID: #"{"users":[{"userRecordName":"_nobody"}]}"#
    case .uploadAssets:
      isPublic
        ? #"{"tokens":[{"fieldName":"file","recordType":"Letter"}]}"#
        : #"{"zoneID":$zone,"tokens":[{"fieldName":"file","recordType":"Note"}]}"#
    case .rereferenceAssets:
      isPublic
        ? #"{"assets":[{"recordName":"letter","fieldName":"file"}]}"#
        : #"{"zoneID":$zone,"assets":[{"recordName":"a","fieldName":"file"}]}"#
    case .listZones, .changedZones, .databaseChanges, .listSubscriptions, .caller, .currentUser,
      .discoverUsers, .lookupContacts, .createToken, .registerToken:
      "{}"
    }
  }

  /// Requests for records that the owner does not share.
  ///
  /// None contains a marker, so a marker in a reply is from the owner's data.
  var probes: [String] {
    switch self {
    case .queryRecords:
      [
        #"{"query":{"recordType":"Note"},"zoneID":$zone}"#,
        #"{"query":{"recordType":"Letter"}}"#,
        #"{"query":{"recordType":"Letter"},"desiredKeys":["text"]}"#,
        #"{"query":{"recordType":"Users"}}"#,
      ]
    case .modifyRecords: Self.saves + Self.places
    case .lookupRecords:
      [
        #"{"records":[{"recordName":"c"}],"zoneID":$zone}"#,
        #"{"records":[{"recordName":"c","desiredKeys":[]}],"zoneID":$zone}"#,
        #"{"records":[{"recordName":"letter"},{"recordName":"c"}]}"#,
      ]
    case .rereferenceAssets:
      [
        #"{"zoneID":$zone,"assets":[{"recordName":"c","fieldName":"file"}]}"#,
        #"{"assets":[{"recordName":"letter","fieldName":"file"}]}"#,
      ]
    case .zoneChanges:
      [#"{"zones":[{"zoneID":$zone,"reverse":true,"desiredKeys":["title"]}]}"#]
    case .resolveShares: [#"{"shortGUIDs":[{"value":"$guid","shouldFetchRootRecord":true}]}"#]
    case .modifyZones:
      [#"{"operations":[{"operationType":"delete","zone":{"zoneID":$zone}}]}"#]
    case .discoverUsers: [#"{"lookupInfos":[{"emailAddress":"ada@example.com"}]}"#]
    case .lookupZones, .changedRecords, .listZones, .changedZones, .databaseChanges,
      .listSubscriptions, .lookupSubscriptions, .modifySubscriptions, .caller, .currentUser,
      .lookupUsersByEmail, .lookupUsersByID, .lookupContacts, .uploadAssets, .acceptShares,
      .requestAccess, .createToken, .registerToken:
      ["{}"]
    }
  }

  /// Every operation on existing hidden records, with their type, another one, and none.
  private static var saves: [String] {
    var bodies: [String] = []
    for type in RecordOperationType.allCases {
      for (name, recordType) in [("c", "Note"), ("letter", "Letter"), ("letter", "Note")] {
        for zone in [#","zoneID":$zone"#, ""] {
          bodies.append(
            """
            {"operations":[{"operationType":"\(type.rawValue)","record":{"recordName":"\(name)",\
            "recordType":"\(recordType)","recordChangeTag":"1","fields":{"n":{"value":1}}}}]\(zone)}
            """
          )
        }
      }
    }
    return bodies
  }

  /// References to a hidden record, and a parent below it.
  private static let places = [
    """
    {"operations":[{"operationType":"create","record":{"recordName":"x","recordType":"Note",\
    "fields":{"r":{"value":{"recordName":"c","action":"VALIDATE","zoneID":$zone}}}}}],"zoneID":$zone}
    """,
    """
    {"operations":[{"operationType":"create","record":{"recordName":"x","recordType":"Note",\
    "parent":{"recordName":"c"}}}],"zoneID":$zone}
    """,
  ]
}
