import Foundation

extension CKRecord {
  /// The effect on a record when the record that it references is deleted.
  public enum ReferenceAction: UInt, Sendable {
    /// Nothing.
    case none = 0
    /// It is deleted too.
    case deleteSelf = 1
  }

  /// A reference to a record of the same zone.
  public typealias Reference = CKReference
}

// Not nested, for the archives' sake: see `CKRecordID`.

/// A reference to a record of the same zone.
///
/// ```swift
/// note["folder"] = CKRecord.Reference(record: folder, action: .deleteSelf)
/// _ = try await database.modifyRecords(saving: [folder, note], deleting: [])
///
/// let query = CKQuery(
///   recordType: "Note",
///   predicate: NSPredicate(
///     format: "folder == %@",
///     CKRecord.Reference(record: folder, action: .none)
///   )
/// )
/// let (found, _) = try await database.records(matching: query, inZoneWith: zoneID)
/// ```
public final class CKReference: NSObject, NSSecureCoding, NSCopying, @unchecked Sendable {
  // Unchecked: immutable after the initializer.

  /// The effect of the referenced record's deletion, by an older name.
  @available(*, deprecated, renamed: "CKRecord.ReferenceAction")
  public typealias Action = CKRecord.ReferenceAction

  /// The referenced record.
  public let recordID: CKRecord.ID
  /// The effect of the referenced record's deletion.
  public let action: CKRecord.ReferenceAction

  /// Creates a reference to the record of an identifier.
  public init(recordID: CKRecord.ID, action: CKRecord.ReferenceAction) {
    self.recordID = recordID
    self.action = action
    super.init()
  }

  /// Creates a reference to a record.
  public convenience init(record: CKRecord, action: CKRecord.ReferenceAction) {
    self.init(recordID: record.recordID, action: action)
  }

  /// Whether archives of this class are read securely.
  public static var supportsSecureCoding: Bool { true }

  /// Reads a reference from an archive.
  public init?(coder: NSCoder) {
    guard let recordID = coder.decodeIfPresent(of: CKRecord.ID.self, forKey: "RecordID"),
      let action = CKRecord.ReferenceAction(
        rawValue: UInt(truncatingIfNeeded: coder.integer(forKey: "Action"))
      )
    else { return nil }
    self.recordID = recordID
    self.action = action
    super.init()
  }

  /// Writes the reference to an archive.
  public func encode(with coder: NSCoder) {
    coder.encode(recordID, forKey: "RecordID")
    coder.encode(Int(action.rawValue), forKey: "Action")
  }

  /// The reference itself: it never changes.
  public func copy(with zone: NSZone? = nil) -> Any { self }

  /// Whether the other object is a reference to the same record with the same action.
  public override func isEqual(_ object: Any?) -> Bool {
    guard let other = object as? CKRecord.Reference else { return false }
    return recordID == other.recordID && action == other.action
  }

  /// A hash of record and action.
  public override var hash: Int {
    var hasher = Hasher()
    hasher.combine(recordID)
    hasher.combine(action)
    return hasher.finalize()
  }

  /// The form CloudKit prints.
  public override var description: String {
    "<CKReference: \(RecordFormatter.address(of: self)); recordID=\(recordID)>"
  }
}
