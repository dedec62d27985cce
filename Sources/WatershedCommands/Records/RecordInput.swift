import ArgumentParser
import CloudKitWebServices
import Foundation

/// The input of `create` and `update`: a record's fields alone, as in `cktool`, or a whole record
/// as printed by `get` and `query`.
///
/// Unknown keys are refused by name; nothing is silently ignored.
struct RecordInput {
  var recordName: String?
  var recordType: String?
  var recordChangeTag: String?
  var parent: ParentDictionary?
  /// Whether the record's parent is to be removed.
  var removesParent = false
  var createsShortGUID: Bool?
  /// The zone of a whole record; `create` and `update` take the zone from their options.
  var zone = ZoneID.defaultZone
  var fields: [String: FieldInput]

  /// The members of a whole record that are read.
  static let accepted: Set<RecordMember> = [
    .recordName, .recordType, .recordChangeTag, .fields, .parent, .shortGUID, .zoneID,
  ]

  /// The members that the server sets, which a printed record has.
  static let ignored: Set<RecordMember> = [.created, .modified, .deleted, .pluginFields]

  /// The members about sharing, which is not copied with a record.
  static let sharing: Set<RecordMember> = Set(
    RecordMember.ofShares + [
      .share, .createShortGUID, .currentUserParticipant, .stableUrl, .displayedHostname,
    ]
  )

  private static let keys = Set(accepted.union(ignored).map(\.rawValue) + ["schema"])

  /// Parses JSON.
  init(_ data: Data) throws {
    let json: JSONValue
    do {
      json = try JSONDecoder().decode(JSONValue.self, from: data)
    } catch {
      throw ValidationError(Self.usage)
    }
    try self.init(json)
  }

  private static let usage =
    "Fields are JSON such as {\"title\":{\"type\":\"stringType\",\"value\":\"x\"}}, or a record as "
    + "`records get` prints it."

  private init(_ json: JSONValue) throws {
    let json = try Self.single(json)
    guard case .object(let members) = json else { throw ValidationError(Self.usage) }
    guard Self.isWholeRecord(members) else {
      fields = try Self.fields(members)
      return
    }
    for key in ["share", "forRecord", "publicPermission", "participants"] where members[key] != nil
    {
      throw ValidationError(
        "\(key): sharing is not copied with a record; remove \(key) from the JSON."
      )
    }
    _ = try json.object("record", of: Self.keys)
    recordName = try members["recordName"]?.text("recordName")
    recordType = try members["recordType"]?.text("recordType")
    recordChangeTag = try members["recordChangeTag"]?.text("recordChangeTag")
    if let value = members["parent"] {
      removesParent = value == .null
      if !removesParent { parent = try Self.parent(value) }
    }
    if let value = members["zoneID"], let given = try FieldInput.zone(value, place: "zoneID") {
      zone = ZoneID(zoneName: given.zoneName)
    }
    if members["shortGUID"] != nil { createsShortGUID = true }
    guard case .object(let values) = members["fields"] ?? .object([:]) else {
      throw ValidationError("fields: an object is expected.")
    }
    fields = try Self.fields(values)
  }

  /// The only record of a reply with a list; any other value unchanged.
  private static func single(_ json: JSONValue) throws -> JSONValue {
    guard case .object(let members) = json, case .list(let records)? = members["records"] else {
      return json
    }
    guard records.count == 1, let record = records.first else {
      throw ValidationError(
        "There are \(records.count) records; give one at a time: --output ndjson prints each in a "
          + "line."
      )
    }
    return record
  }

  /// A field's value is always an object, so that a field can be named `recordName`.
  private static func isWholeRecord(_ members: [String: JSONValue]) -> Bool {
    ["recordName", "recordType"].contains { key in
      if case .text? = members[key] { true } else { false }
    }
  }

  private static func fields(_ values: [String: JSONValue]) throws -> [String: FieldInput] {
    var fields: [String: FieldInput] = [:]
    for (name, value) in values { fields[name] = try FieldInput(value, place: name) }
    return fields
  }

  private static func parent(_ value: JSONValue) throws -> ParentDictionary {
    let members = try value.object("parent", of: ["recordName", "zoneID"])
    guard let name = try members["recordName"]?.text("parent.recordName") else {
      throw ValidationError("parent: a parent has a recordName.")
    }
    return ParentDictionary(
      recordName: name,
      zoneID: try members["zoneID"].flatMap { try FieldInput.zone($0, place: "parent.zoneID") }
    )
  }
}
