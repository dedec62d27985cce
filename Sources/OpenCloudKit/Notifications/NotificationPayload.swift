import CloudKitWebServices
import Foundation

/// The typed contents of a notification's dictionary; values of a wrong type count as absent.
struct NotificationPayload: @unchecked Sendable {
  // Unchecked: `fields` holds strings, numbers and lists of these, which never change.

  /// The key of the payload that describes the change.
  private enum Source: String, CaseIterable {
    case query = "qry"
    case zone = "fet"
    case database = "met"
  }

  let notificationID: String?
  let containerIdentifier: String?
  /// Whether the service left out texts and fields.
  let isPruned: Bool
  let userRecordName: String?
  let subscriptionID: String?
  let recordName: String?
  let zoneID: CKRecordZone.ID?
  let scope: CKDatabase.Scope?
  let reason: Int?
  let fields: [String: Any]?
  let badge: Int?
  let sound: String?
  let category: String?
  private let source: Source
  private let alertTexts: [String: String]
  private let alertLists: [String: [String]]

  /// Reads a dictionary; nil if it describes no CloudKit change.
  init?(_ dictionary: [AnyHashable: Any]) {
    guard let ck = dictionary["ck"] as? [AnyHashable: Any],
      let source = Source.allCases.first(where: { ck[$0.rawValue] is [AnyHashable: Any] }),
      let details = ck[source.rawValue] as? [AnyHashable: Any]
    else { return nil }
    self.source = source
    notificationID = ck["nid"] as? String
    containerIdentifier = ck["cid"] as? String
    isPruned = ck["pruned"] as? Bool ?? false
    userRecordName = ck["ckuserid"] as? String
    subscriptionID = details["sid"] as? String
    recordName = (details["rid"] as? String).flatMap { $0.isEmpty ? nil : $0 }
    scope = Self.scope(Self.integer(details["dbs"]))
    let mapping = WireMapping(scope: scope ?? .private, effects: ProcessEffects.current)
    zoneID = (details["zid"] as? String).flatMap { name in
      guard !name.isEmpty else { return nil }
      return mapping.zoneID(ZoneID(zoneName: name, ownerRecordName: details["zoid"] as? String))
    }
    reason = Self.integer(details["fo"])
    fields = (details["af"] as? [AnyHashable: Any]).map(Self.strings)
    let aps = dictionary["aps"] as? [AnyHashable: Any] ?? [:]
    badge = Self.integer(aps["badge"])
    sound = aps["sound"] as? String
    category = aps["category"] as? String
    var texts: [String: String] = [:]
    var lists: [String: [String]] = [:]
    if let text = aps["alert"] as? String { texts["body"] = text }
    for (key, value) in aps["alert"] as? [AnyHashable: Any] ?? [:] {
      guard let key = key as? String else { continue }
      if let text = value as? String { texts[key] = text }
      if let list = value as? [Any] { lists[key] = list.compactMap { $0 as? String } }
    }
    alertTexts = texts
    alertLists = lists
  }

  /// The notification of the payload's kind.
  var notification: CKNotification {
    switch source {
    case .query: CKQueryNotification(self, type: .query)
    case .zone: CKRecordZoneNotification(self, type: .recordZone)
    case .database: CKDatabaseNotification(self, type: .database)
    }
  }

  func alert(_ key: String) -> String? { alertTexts[key] }

  func alertList(_ key: String) -> [String]? { alertLists[key] }

  private static func scope(_ number: Int?) -> CKDatabase.Scope? {
    switch number {
    case 0: .public
    case 1: .private
    case 2: .shared
    default: nil
    }
  }

  private static func integer(_ value: Any?) -> Int? {
    (value as? NSNumber)?.intValue ?? value as? Int
  }

  private static func strings(_ dictionary: [AnyHashable: Any]) -> [String: Any] {
    var strings: [String: Any] = [:]
    for (key, value) in dictionary {
      guard let key = key as? String, !(value is NSNull) else { continue }
      strings[key] = value
    }
    return strings
  }
}
