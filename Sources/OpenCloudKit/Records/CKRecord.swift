import Foundation
import Synchronization

/// The fields of one record and what the service knows about it.
///
/// ```swift
/// let noteID = CKRecord.ID(
///   recordName: "note-1",
///   zoneID: CKRecordZone.ID(zoneName: "Notes")
/// )
/// let note = CKRecord(recordType: "Note", recordID: noteID)
/// note["text"] = "Buy milk"
/// note["priority"] = 2
/// note["tags"] = ["home", "today"]
/// note["folder"] = CKRecord.Reference(recordID: folderID, action: .deleteSelf)
/// let text = note["text"] as? String
/// let priority: Int? = note["priority"]
/// ```
///
/// Differs from CloudKit: a record may be shared between threads; each access is atomic by itself.
///
/// Differs from CloudKit: clients of the web services read and write dates with whole milliseconds. Between devices a
/// date is exact; queries compare its milliseconds.
open class CKRecord: NSObject, NSSecureCoding, NSCopying, CKRecordKeyValueSetting, Sequence,
  @unchecked Sendable
{
  // Unchecked: all mutable state is inside `state`.

  /// The name of a record's type.
  public typealias RecordType = String
  /// The name of a field.
  public typealias FieldKey = String

  /// The names of CloudKit's own record types.
  public enum SystemType {
    /// The type of the record that represents a user.
    public static let userRecord: CKRecord.RecordType = "Users"
    /// The type of the record that represents a share.
    public static let share: CKRecord.RecordType = "cloudkit.share"
  }

  /// The names of the fields that the service sets.
  public enum SystemFieldKey {
    /// The record's parent.
    public static let parent: CKRecord.FieldKey = "parent"
    /// The record's share.
    public static let share: CKRecord.FieldKey = "share"
    /// The record's identifier.
    public static var recordID: CKRecord.FieldKey { "recordID" }
    /// The user who created the record.
    public static var creatorUserRecordID: CKRecord.FieldKey { "creatorUserRecordID" }
    /// When the record was created.
    public static var creationDate: CKRecord.FieldKey { "creationDate" }
    /// The user who last changed the record.
    public static var lastModifiedUserRecordID: CKRecord.FieldKey { "lastModifiedUserRecordID" }
    /// When the record was changed last.
    public static var modificationDate: CKRecord.FieldKey { "modificationDate" }
  }

  /// One field: its value and whether the service keeps it encrypted.
  package struct Field: Hashable, Codable, Sendable {
    package var value: RecordValue
    package var isEncrypted: Bool

    package init(_ value: RecordValue, isEncrypted: Bool = false) {
      self.value = value
      self.isEncrypted = isEncrypted
    }
  }

  /// All mutable state of a record.
  struct State: Sendable {
    var system: SystemFields
    var fields: [FieldKey: Field]
    /// The values of the changed fields before their first change.
    var changed: [FieldKey: Field?]
  }

  private let state: Mutex<State>

  /// The name of the record's type.
  public let recordType: CKRecord.RecordType
  /// The identifier of the record in its database.
  public let recordID: CKRecord.ID

  // MARK: Creating records

  /// Creates a record that the service has not stored yet.
  public convenience init(
    recordType: CKRecord.RecordType,
    recordID: CKRecord.ID = CKRecord.ID()
  ) {
    self.init(recordType: recordType, recordID: recordID, system: SystemFields(), fields: [:])
  }

  /// Creates a record with a new name in a zone.
  @available(*, deprecated, message: "Use init(recordType:recordID:) with a record ID in the zone")
  public convenience init(recordType: CKRecord.RecordType, zoneID: CKRecordZone.ID) {
    self.init(recordType: recordType, recordID: CKRecord.ID(zoneID: zoneID))
  }

  /// Creates a record from the service's values: no key counts as changed.
  package convenience init(
    recordType: CKRecord.RecordType,
    recordID: CKRecord.ID,
    system: SystemFields,
    fields: [FieldKey: Field]
  ) {
    precondition(!recordType.isEmpty, "recordType may not be empty")
    self.init(
      recordType: recordType,
      recordID: recordID,
      system: system,
      fields: fields,
      checked: ()
    )
  }

  /// The designated initializer of this class and its subclass, for validated record types.
  init(
    recordType: CKRecord.RecordType,
    recordID: CKRecord.ID,
    system: SystemFields,
    fields: [FieldKey: Field],
    checked: Void
  ) {
    self.recordType = recordType
    self.recordID = recordID
    state = Mutex(State(system: system, fields: fields, changed: [:]))
    super.init()
  }

  private init(recordType: CKRecord.RecordType, recordID: CKRecord.ID, state: State) {
    self.recordType = recordType
    self.recordID = recordID
    self.state = Mutex(state)
    super.init()
  }

  /// A copy with the same contents and the same changed keys.
  open func copy(with zone: NSZone? = nil) -> Any {
    CKRecord(recordType: recordType, recordID: recordID, state: state.withLock { $0 })
  }

  // MARK: Archives

  /// Whether archives of this class are read securely.
  open class var supportsSecureCoding: Bool { true }

  /// Reads a record from an archive of the whole record, or of its system fields only.
  public required init?(coder: NSCoder) {
    guard let archive = RecordArchive(coder: coder) else { return nil }
    recordType = archive.recordType
    recordID = archive.recordID
    state = Mutex(
      State(
        system: archive.system,
        fields: archive.contents?.fields ?? [:],
        changed: Dictionary(
          (archive.contents?.changedKeys ?? []).map { ($0, archive.contents?.former?[$0]) },
          uniquingKeysWith: { first, _ in first }
        )
      )
    )
    super.init()
  }

  /// Writes the whole record to an archive.
  open func encode(with coder: NSCoder) {
    let contents = state.withLock {
      RecordArchive.Contents(
        fields: $0.fields,
        changedKeys: $0.changed.keys.sorted(),
        former: $0.changed.compactMapValues { $0 }
      )
    }
    archive(contents).encode(with: coder)
  }

  /// Writes the system fields, without the record's own fields, to an archive.
  open func encodeSystemFields(with coder: NSCoder) {
    archive(nil).encode(with: coder)
  }

  private func archive(_ contents: RecordArchive.Contents?) -> RecordArchive {
    RecordArchive(
      recordType: recordType,
      recordID: recordID,
      system: systemFields,
      contents: contents
    )
  }

  // MARK: System fields

  /// The system fields of the record.
  package var systemFields: SystemFields {
    get { state.withLock { $0.system } }
    set { state.withLock { $0.system = newValue } }
  }

  /// When the record was first saved.
  open var creationDate: Date? { systemFields.creationDate }
  /// When the record was last saved.
  open var modificationDate: Date? { systemFields.modificationDate }
  /// The user who first saved the record.
  open var creatorUserRecordID: CKRecord.ID? { systemFields.creatorUserRecordID }
  /// The user who last saved the record.
  open var lastModifiedUserRecordID: CKRecord.ID? { systemFields.lastModifiedUserRecordID }
  /// The service's tag of this version of the record.
  open var recordChangeTag: String? { systemFields.recordChangeTag }
  /// The share that the record is the root of.
  open var share: CKRecord.Reference? { systemFields.share }

  /// The record whose share also shares this one.
  open var parent: CKRecord.Reference? {
    get { systemFields.parent }
    set {
      state.withLock { state in
        state.system.parent = newValue
        state.system.isParentChanged = true
      }
    }
  }

  /// Sets the parent to a record.
  open func setParent(_ parentRecord: CKRecord?) {
    setParent(parentRecord?.recordID)
  }

  /// Sets the parent to the record of an identifier.
  open func setParent(_ parentRecordID: CKRecord.ID?) {
    parent = parentRecordID.map { CKRecord.Reference(recordID: $0, action: .none) }
  }

  // MARK: Values

  /// The value of a key, or nil.
  open func object(forKey key: CKRecord.FieldKey) -> (any CKRecordValueProtocol)? {
    field(forKey: key, encrypted: false)?.objectValue
  }

  /// Sets the value of a key; `nil` removes it.
  open func setObject(_ object: (any CKRecordValueProtocol)?, forKey key: CKRecord.FieldKey) {
    set(object, forKey: key, encrypted: false)
  }

  /// The value of a key; setting `nil` removes it.
  open subscript(key: CKRecord.FieldKey) -> (any CKRecordValueProtocol)? {
    get { object(forKey: key) }
    set { setObject(newValue, forKey: key) }
  }

  /// The value of a key, as key-value coding reads it: a field, or else a property of the record,
  /// such as `creationDate`.
  open func value(forKey key: String) -> Any? {
    if let object = object(forKey: key) { return object }
    return switch key {
    case "recordID": recordID
    case "recordType": recordType
    case "recordChangeTag": recordChangeTag
    case "creationDate": creationDate
    case "creatorUserRecordID": creatorUserRecordID
    case "modificationDate": modificationDate
    case "lastModifiedUserRecordID": lastModifiedUserRecordID
    case "parent": parent
    case "share": share
    default: nil
    }
  }

  /// Sets the value of a key, as key-value coding does; `nil` removes it.
  open func setValue(_ value: Any?, forKey key: String) {
    if let value = value as? any CKRecordValueProtocol {
      setObject(value, forKey: key)
    } else if let value {
      Self.refuse(value, forKey: key, of: recordType)
    } else {
      setObject(nil, forKey: key)
    }
  }

  /// Sets the values of several keys, as key-value coding does.
  public func setValuesForKeys(_ keyedValues: [String: Any]) {
    for (key, value) in keyedValues { setValue(value is NSNull ? nil : value, forKey: key) }
  }

  /// The values of several keys, as key-value coding reads them; `NSNull` where there is none.
  public func dictionaryWithValues(forKeys keys: [String]) -> [String: Any] {
    Dictionary(keys.map { ($0, value(forKey: $0) ?? NSNull()) }) { first, _ in first }
  }

  /// The keys that have values, sorted.
  open func allKeys() -> [CKRecord.FieldKey] { keys(encrypted: false) }

  /// The words of the record's strings in lower case, without duplicates.
  open func allTokens() -> [String] {
    var tokens: Set<String> = []
    for field in fields.values where !field.isEncrypted {
      guard case .string(let text) = field.value else { continue }
      for word in text.lowercased().split(whereSeparator: { !$0.isLetter && !$0.isNumber }) {
        tokens.insert(String(word))
      }
    }
    return tokens.sorted()
  }

  /// The keys whose values were set since the record was created, fetched or saved, sorted.
  open func changedKeys() -> [CKRecord.FieldKey] {
    state.withLock { $0.changed.keys.sorted() }
  }

  /// The values that the service keeps encrypted.
  ///
  /// Differs from CloudKit: a key has one value, encrypted or not; setting the one removes the
  /// other. The keys that changed here are among the record's own changed keys.
  open var encryptedValues: any CKRecordKeyValueSetting & Sendable { EncryptedValues(of: self) }

  /// Iterates over the keys and values, sorted by key.
  public func makeIterator() -> CKRecordKeyValueIterator {
    let fields = self.fields
    return CKRecordKeyValueIterator(
      fields.keys.sorted().compactMap { key in
        guard let field = fields[key], !field.isEncrypted else { return nil }
        return (key, field.value.objectValue)
      }
    )
  }

  /// The record in the form CloudKit prints.
  open override var description: String { formatted() }
  /// The record in the form CloudKit prints.
  open override var debugDescription: String { formatted() }
}

extension CKRecord {
  /// All fields with their typed values.
  package var fields: [FieldKey: Field] { state.withLock { $0.fields } }

  /// The typed value of a key, encrypted or not.
  package func fieldValue(forKey key: FieldKey) -> RecordValue? {
    state.withLock { $0.fields[key]?.value }
  }

  /// Sets the typed value of a key, which then counts as changed; `nil` removes it.
  package func setFieldValue(
    _ value: RecordValue?,
    forKey key: FieldKey,
    encrypted: Bool = false
  ) {
    state.withLock { state in
      if !state.changed.keys.contains(key) {
        state.changed[key] = .some(state.fields[key])
      }
      state.fields[key] = value.map { Field($0, isEncrypted: encrypted) }
    }
  }

  /// Replaces system fields and fields by those of a reply; no key counts as changed afterwards.
  package func adopt(system: SystemFields, fields: [FieldKey: Field]) {
    state.withLock { state in
      state = State(system: system, fields: fields, changed: [:])
    }
  }

  /// Replaces the system fields after a successful save.
  ///
  /// Fields, the parent and a new share that were set during the save stay changed.
  package func adoptSaved(system: SystemFields, sent: SystemFields, fields: [FieldKey: Field?]) {
    state.withLock { state in
      let current = state.system
      state.system = system
      state.system.isParentChanged =
        current.isParentChanged && !(sent.isParentChanged && sent.parent == current.parent)
      state.system.isShareChanged =
        current.isShareChanged && !(sent.isShareChanged && sent.share == current.share)
      if state.system.isParentChanged || system.parent == nil {
        state.system.parent = current.parent
      }
      if state.system.isShareChanged || system.share == nil { state.system.share = current.share }
      for (key, field) in fields where state.changed.keys.contains(key) {
        if state.fields[key] == field {
          state.changed[key] = nil
        } else {
          state.changed[key] = .some(field)
        }
      }
    }
  }

  /// The record before its keys were changed: the ancestor record of a conflict.
  package func ancestor() -> CKRecord {
    state.withLock { state in
      var fields = state.fields
      for (key, original) in state.changed { fields[key] = original }
      return CKRecord(
        recordType: recordType,
        recordID: recordID,
        system: state.system,
        fields: fields
      )
    }
  }

  /// The fields that a save of the changed keys sends; an absent value removes the field.
  package func changedFields() -> [FieldKey: Field?] {
    state.withLock { state in
      var changes: [FieldKey: Field?] = [:]
      for key in state.changed.keys { changes[key] = .some(state.fields[key]) }
      return changes
    }
  }

  /// Copies the changed keys of a record with the same contents.
  func takeChanges(of other: CKRecord) {
    let changed = other.state.withLock { $0.changed }
    state.withLock { $0.changed = changed }
  }

  /// Sets a new share of which this record is the root; saving both stores the link.
  func noteShare(_ shareID: CKRecord.ID) {
    state.withLock { state in
      state.system.share = CKRecord.Reference(recordID: shareID, action: .none)
      state.system.isShareChanged = true
    }
  }

  /// Discards which keys were changed.
  package func clearChangedKeys() {
    state.withLock { state in
      state.changed = [:]
      state.system.isParentChanged = false
    }
  }

  func field(forKey key: FieldKey, encrypted: Bool) -> RecordValue? {
    state.withLock { state in
      guard let field = state.fields[key], field.isEncrypted == encrypted else { return nil }
      return field.value
    }
  }

  func set(_ object: (any CKRecordValueProtocol)?, forKey key: FieldKey, encrypted: Bool) {
    guard let object else { return setFieldValue(nil, forKey: key, encrypted: encrypted) }
    guard let value = RecordValue(object) else {
      Self.refuse(object, forKey: key, of: recordType)
    }
    setFieldValue(value, forKey: key, encrypted: encrypted)
  }

  /// A value of an unsupported type is a programming error, as it is at Apple.
  private static func refuse(_ value: Any, forKey key: FieldKey, of type: RecordType) -> Never {
    preconditionFailure(
      """
      Value of type \(Swift.type(of: value)) for key "\(key)" of a \(type) record can't be \
      stored: expected one of NSString, NSNumber, NSArray, NSDate, NSData, CLLocation, \
      CKReference, CKAsset.
      """
    )
  }

  func keys(encrypted: Bool) -> [FieldKey] {
    state.withLock { state in
      state.fields.filter { $0.value.isEncrypted == encrypted }.keys.sorted()
    }
  }

  /// The changed keys whose value is encrypted, or was before it was removed or replaced.
  func changedEncryptedKeys() -> [FieldKey] {
    state.withLock { state in
      state.changed.filter { key, original in
        state.fields[key]?.isEncrypted == true || original?.isEncrypted == true
      }.keys.sorted()
    }
  }
}
