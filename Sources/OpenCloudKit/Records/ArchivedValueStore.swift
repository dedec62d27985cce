import Foundation

/// The values of a record in an archive of Apple's CloudKit, which has them in objects of their own.
final class ArchivedValueStore: NSObject, NSSecureCoding {
  /// The values by key.
  let values: [String: RecordValue]
  /// The keys that were changed since the record was fetched.
  let changedKeys: [String]
  /// The values that changed keys had before.
  let former: [String: RecordValue]

  static var supportsSecureCoding: Bool { true }

  private static var classes: [AnyClass] {
    [
      NSDictionary.self, NSArray.self, NSSet.self, NSString.self, NSNumber.self, NSDate.self,
      NSData.self, CKReference.self, CKRecordID.self, CLLocation.self, ArchivedAsset.self,
    ]
  }

  init?(coder: NSCoder) {
    guard let values = Self.values("RecordValues", of: coder),
      let former = Self.values("OriginalValues", of: coder)
    else { return nil }
    self.values = values
    self.former = former
    let changed =
      coder.containsValue(forKey: "ChangedKeys")
      ? coder.decodeObject(of: Self.classes, forKey: "ChangedKeys") as? NSSet : nil
    changedKeys = (changed?.allObjects ?? []).compactMap { $0 as? String }.sorted()
    super.init()
  }

  /// The archives of this library have no such object.
  func encode(with coder: NSCoder) {}

  /// A value that can't be read leaves no record that lacks it.
  private static func values(_ key: String, of coder: NSCoder) -> [String: RecordValue]? {
    guard coder.containsValue(forKey: key) else { return [:] }
    guard let found = coder.decodeObject(of: classes, forKey: key) as? NSDictionary else {
      return (coder as? NSKeyedUnarchiver)?.error == nil ? [:] : nil
    }
    var values: [String: RecordValue] = [:]
    for (key, object) in found {
      guard let key = key as? String, let value = value(of: object) else { return nil }
      values[key] = value
    }
    return values
  }

  private static func value(of object: Any) -> RecordValue? {
    if let asset = object as? ArchivedAsset { return .asset(asset.asset) }
    if let list = object as? [Any] {
      let values = list.compactMap(value)
      return values.count == list.count ? .list(values) : nil
    }
    return (object as? any CKRecordValueProtocol).flatMap { RecordValue($0) }
  }
}

/// A file in an archive of Apple's CloudKit: its place, not its bytes.
final class ArchivedAsset: NSObject, NSSecureCoding {
  let asset: CKAsset

  static var supportsSecureCoding: Bool { true }

  init?(coder: NSCoder) {
    asset = CKAsset(
      fileURL: coder.decodeIfPresent(of: NSURL.self, forKey: "AssetFileURL").map {
        URL(fileURLWithPath: $0.path ?? "")
      },
      storedFile: nil,
      uuid: coder.decodeString(forKey: "AssetUUID").flatMap(UUID.init(uuidString:))
        ?? ProcessEffects.current.uuid()
    )
    super.init()
  }

  /// The archives of this library have no such object.
  func encode(with coder: NSCoder) {}
}
