import Foundation

/// An object whose values are read and set by key: a record, and a record's encrypted values.
public protocol CKRecordKeyValueSetting: NSObjectProtocol {
  /// The value of a key, or nil.
  func object(forKey key: String) -> (any CKRecordValueProtocol)?
  /// Sets the value of a key; `nil` removes it.
  func setObject(_ object: (any CKRecordValueProtocol)?, forKey key: String)
  /// The keys that have values.
  func allKeys() -> [String]
  /// The keys whose values were set since the record was created, fetched or saved.
  func changedKeys() -> [String]
}

extension CKRecordKeyValueSetting {
  /// The value of a key.
  public subscript(key: CKRecord.FieldKey) -> (any CKRecordValueProtocol)? {
    get { object(forKey: key) }
    set { setObject(newValue, forKey: key) }
  }

  /// The value of a key as a type: `nil` where the field holds another type.
  public subscript<T: CKRecordValueProtocol>(key: CKRecord.FieldKey) -> T? {
    get { object(forKey: key) as? T }
    set { setObject(newValue, forKey: key) }
  }
}

/// Iterates over the keys and values of a record, sorted by key.
public struct CKRecordKeyValueIterator: IteratorProtocol {
  private var pairs: ArraySlice<(CKRecord.FieldKey, any CKRecordValueProtocol)>

  init(_ pairs: [(CKRecord.FieldKey, any CKRecordValueProtocol)]) {
    self.pairs = pairs[...]
  }

  /// The next key and its value.
  public mutating func next() -> (CKRecord.FieldKey, any CKRecordValueProtocol)? {
    pairs.popFirst()
  }
}

/// The encrypted values of a record, by the same keys as the plain ones.
final class EncryptedValues: NSObject, CKRecordKeyValueSetting, Sendable {
  private let record: CKRecord

  init(of record: CKRecord) {
    self.record = record
  }

  func object(forKey key: String) -> (any CKRecordValueProtocol)? {
    record.field(forKey: key, encrypted: true)?.objectValue
  }

  func setObject(_ object: (any CKRecordValueProtocol)?, forKey key: String) {
    record.set(object, forKey: key, encrypted: true)
  }

  func allKeys() -> [String] { record.keys(encrypted: true) }

  func changedKeys() -> [String] {
    record.changedEncryptedKeys()
  }
}
