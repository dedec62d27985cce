import Foundation

/// A record in requests and replies: one lenient type, since clients send back what they received.
package struct RecordDictionary: Hashable, Sendable {
  /// Absent in a create: the server generates one.
  package var recordName: String?
  package var recordType: String?
  /// Changes with every save; compared for equality only.
  package var recordChangeTag: String?
  package var fields: [String: FieldValue]?
  package var zoneID: ZoneID?
  package var created: ServerStamp?
  package var modified: ServerStamp?
  package var deleted: Bool?
  package var parent: ParentDictionary?
  /// `"parent": null` in a request: the save removes the record's parent.
  package var removesParent = false
  package var share: ReferenceValue?
  package var shortGUID: String?
  package var createShortGUID: Bool?
  /// The members that only shares have.
  package var sharing: ShareDictionary? {
    get { shareBox?.dictionary }
    set { shareBox = newValue.map { .value($0) } }
  }
  private var shareBox: ShareBox?
  /// Whether `encode(to:)` writes numbers as strings; not part of the record and never decoded.
  package var writesNumbersAsStrings = false
  /// Whether a reply contains the documented, always empty dictionary of plug-in fields.
  package var hasPluginFields = false

  package init(
    recordName: String? = nil,
    recordType: String? = nil,
    recordChangeTag: String? = nil,
    fields: [String: FieldValue]? = nil,
    zoneID: ZoneID? = nil,
    created: ServerStamp? = nil,
    modified: ServerStamp? = nil,
    deleted: Bool? = nil,
    parent: ParentDictionary? = nil,
    share: ReferenceValue? = nil,
    shortGUID: String? = nil,
    createShortGUID: Bool? = nil,
    sharing: ShareDictionary? = nil
  ) {
    self.recordName = recordName
    self.recordType = recordType
    self.recordChangeTag = recordChangeTag
    self.fields = fields
    self.zoneID = zoneID
    self.created = created
    self.modified = modified
    self.deleted = deleted
    self.parent = parent
    self.share = share
    self.shortGUID = shortGUID
    self.createShortGUID = createShortGUID
    self.sharing = sharing
  }
}

extension RecordDictionary: Codable {
  /// A field's name as a coding key.
  private struct FieldName: CodingKey {
    var stringValue: String
    var intValue: Int? { nil }

    init(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
  }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: RecordMember.self)
    recordName = try container.decodeIfPresent(String.self, forKey: .recordName)
    recordType = try container.decodeIfPresent(String.self, forKey: .recordType)
    recordChangeTag = try container.decodeIfPresent(String.self, forKey: .recordChangeTag)
    fields = try container.decodeIfPresent([String: FieldValue].self, forKey: .fields)
    zoneID = try container.decodeIfPresent(ZoneID.self, forKey: .zoneID)
    // They mean nothing in a request, where CloudKit JS passes on any value that an app puts there.
    created = try? container.decodeIfPresent(ServerStamp.self, forKey: .created)
    modified = try? container.decodeIfPresent(ServerStamp.self, forKey: .modified)
    deleted = try container.decodeIfPresent(Bool.self, forKey: .deleted)
    parent = try container.decodeIfPresent(ParentDictionary.self, forKey: .parent)
    removesParent = parent == nil && container.contains(.parent)
    share = try container.decodeIfPresent(ReferenceValue.self, forKey: .share)
    shortGUID = try? container.decodeIfPresent(String.self, forKey: .shortGUID)
    createShortGUID = try container.decodeIfPresent(Bool.self, forKey: .createShortGUID)
    let hasSharing = RecordMember.ofShares.contains { container.contains($0) }
    if hasSharing { sharing = try ShareDictionary(from: decoder) }
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: RecordMember.self)
    try container.encodeIfPresent(recordName, forKey: .recordName)
    try container.encodeIfPresent(recordType, forKey: .recordType)
    try container.encodeIfPresent(recordChangeTag, forKey: .recordChangeTag)
    if let fields {
      var nested = container.nestedContainer(keyedBy: FieldName.self, forKey: .fields)
      for (name, value) in fields {
        var field = nested.nestedContainer(
          keyedBy: FieldValueKeys.self,
          forKey: FieldName(stringValue: name)
        )
        try value.encode(into: &field, numbersAsStrings: writesNumbersAsStrings)
      }
    }
    if hasPluginFields { try container.encode([String: String](), forKey: .pluginFields) }
    try container.encodeIfPresent(zoneID, forKey: .zoneID)
    try container.encodeIfPresent(created, forKey: .created)
    try container.encodeIfPresent(modified, forKey: .modified)
    try container.encodeIfPresent(deleted, forKey: .deleted)
    try container.encodeIfPresent(parent, forKey: .parent)
    if parent == nil, removesParent { try container.encodeNil(forKey: .parent) }
    try container.encodeIfPresent(share, forKey: .share)
    try container.encodeIfPresent(shortGUID, forKey: .shortGUID)
    try container.encodeIfPresent(createShortGUID, forKey: .createShortGUID)
    try sharing?.encode(to: encoder)
  }
}
