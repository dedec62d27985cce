import Foundation

/// The form of a record in a keyed archive.
///
/// System fields are plain strings and dates under their own keys; the values are one property
/// list under `Values`, which an archive of the system fields does not have. The keys of the system
/// fields are those of Apple's CloudKit, so that an app's archives of them are read here. Apple's archives
/// of whole records are read too; their values are objects.
struct RecordArchive {
  /// The part that `encodeSystemFields(with:)` leaves out.
  struct Contents: Codable {
    var fields: [String: CKRecord.Field]
    var changedKeys: [String]
    /// The values that changed keys had before; archives of earlier versions have none.
    var former: [String: CKRecord.Field]?
  }

  var recordType: String
  var recordID: CKRecord.ID
  var system: CKRecord.SystemFields
  var contents: Contents?

  private enum Key {
    static let recordType = "RecordType"
    static let recordID = "RecordID"
    static let changeTag = "ETag"
    static let creationDate = "RecordCtime"
    static let modificationDate = "RecordMtime"
    static let creator = "CreatorUserRecordID"
    static let modifier = "LastModifiedUserRecordID"
    static let parent = "ParentReference"
    static let isParentChanged = "ParentReferenceChanged"
    static let share = "ShareReference"
    static let isShareChanged = "ShareReferenceChanged"
    static let values = "Values"
    static let appleValues = "ValueStore"
    static let appleEncryptedValues = "EncryptedValueStore"
  }

  init(
    recordType: String,
    recordID: CKRecord.ID,
    system: CKRecord.SystemFields,
    contents: Contents?
  ) {
    self.recordType = recordType
    self.recordID = recordID
    self.system = system
    self.contents = contents
  }

  init?(coder: NSCoder) {
    guard coder.allowsKeyedCoding,
      let recordType = coder.decodeString(forKey: Key.recordType), !recordType.isEmpty,
      let recordID = coder.decodeIfPresent(of: CKRecord.ID.self, forKey: Key.recordID)
    else { return nil }
    self.recordType = recordType
    self.recordID = recordID
    system = CKRecord.SystemFields()
    system.recordChangeTag = coder.decodeString(forKey: Key.changeTag)
    system.creationDate = coder.decodeDate(forKey: Key.creationDate)
    system.modificationDate = coder.decodeDate(forKey: Key.modificationDate)
    system.creatorUserRecordID = coder.decodeIfPresent(of: CKRecord.ID.self, forKey: Key.creator)
    system.lastModifiedUserRecordID = coder.decodeIfPresent(
      of: CKRecord.ID.self,
      forKey: Key.modifier
    )
    system.parent = coder.decodeIfPresent(of: CKRecord.Reference.self, forKey: Key.parent)
    system.isParentChanged = coder.integer(forKey: Key.isParentChanged) != 0
    system.share = coder.decodeIfPresent(of: CKRecord.Reference.self, forKey: Key.share)
    system.isShareChanged = coder.integer(forKey: Key.isShareChanged) != 0
    // A part that could not be read leaves no record that lacks it.
    guard (coder as? NSKeyedUnarchiver)?.error == nil else { return nil }
    guard let data = coder.decodeIfPresent(of: NSData.self, forKey: Key.values) else {
      self.contents = Self.appleContents(of: coder)
      guard (coder as? NSKeyedUnarchiver)?.error == nil else { return nil }
      return
    }
    guard
      let contents = try? PropertyListDecoder().decode(
        Contents.self,
        from: Data(referencing: data)
      )
    else { return nil }
    self.contents = contents
  }

  /// The values in an archive that Apple's CloudKit wrote, if it has some.
  private static func appleContents(of coder: NSCoder) -> Contents? {
    let stores = [(Key.appleValues, false), (Key.appleEncryptedValues, true)].compactMap {
      key,
      isEncrypted in
      coder.decodeIfPresent(of: ArchivedValueStore.self, forKey: key).map { ($0, isEncrypted) }
    }
    guard !stores.isEmpty else { return nil }
    var contents = Contents(fields: [:], changedKeys: [], former: [:])
    for (store, isEncrypted) in stores {
      func fields(_ values: [String: RecordValue]) -> [String: CKRecord.Field] {
        values.mapValues { CKRecord.Field($0, isEncrypted: isEncrypted) }
      }
      contents.fields.merge(fields(store.values)) { $1 }
      contents.former?.merge(fields(store.former)) { $1 }
      contents.changedKeys += store.changedKeys
    }
    return contents
  }

  func encode(with coder: NSCoder) {
    coder.encode(recordType as NSString, forKey: Key.recordType)
    coder.encode(recordID, forKey: Key.recordID)
    coder.encodeIfPresent(system.recordChangeTag as NSString?, forKey: Key.changeTag)
    coder.encodeIfPresent(system.creationDate as NSDate?, forKey: Key.creationDate)
    coder.encodeIfPresent(system.modificationDate as NSDate?, forKey: Key.modificationDate)
    coder.encodeIfPresent(system.creatorUserRecordID, forKey: Key.creator)
    coder.encodeIfPresent(system.lastModifiedUserRecordID, forKey: Key.modifier)
    coder.encodeIfPresent(system.parent, forKey: Key.parent)
    coder.encode(system.isParentChanged ? 1 : 0, forKey: Key.isParentChanged)
    coder.encodeIfPresent(system.share, forKey: Key.share)
    if system.isShareChanged { coder.encode(1, forKey: Key.isShareChanged) }
    guard let contents else { return }
    let encoder = PropertyListEncoder()
    encoder.outputFormat = .binary
    do {
      coder.encode(try encoder.encode(contents) as NSData, forKey: Key.values)
    } catch {
      preconditionFailure("The values of \(recordID) can't be archived: \(error)")
    }
  }
}

extension NSCoder {
  func encodeIfPresent(_ object: Any?, forKey key: String) {
    if let object { encode(object, forKey: key) }
  }

  /// Outside Apple's platforms, decoding an absent key is an error that stops the process.
  func decodeIfPresent<Value: NSObject & NSCoding>(
    of type: Value.Type,
    forKey key: String
  ) -> Value? {
    guard containsValue(forKey: key) else { return nil }
    return decodeObject(of: type, forKey: key)
  }

  func integer(forKey key: String) -> Int {
    containsValue(forKey: key) ? decodeInteger(forKey: key) : 0
  }

  func decodeString(forKey key: String) -> String? {
    decodeIfPresent(of: NSString.self, forKey: key).map { String(describing: $0) }
  }

  func decodeDate(forKey key: String) -> Date? {
    decodeIfPresent(of: NSDate.self, forKey: key).map {
      Date(timeIntervalSinceReferenceDate: $0.timeIntervalSinceReferenceDate)
    }
  }
}
