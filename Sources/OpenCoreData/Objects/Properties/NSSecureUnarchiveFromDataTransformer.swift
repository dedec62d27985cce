import Foundation

/// Turns bytes into secure objects and back, with a list of classes that may come out.
open class NSSecureUnarchiveFromDataTransformer: ValueTransformer, @unchecked Sendable {
  /// The classes that archives of top level may hold; subclasses add their own.
  open class var allowedTopLevelClasses: [AnyClass] {
    [
      NSArray.self, NSDictionary.self, NSSet.self, NSString.self, NSNumber.self, NSDate.self,
      NSData.self, NSURL.self, NSUUID.self, NSNull.self,
    ]
  }

  open override class func transformedValueClass() -> AnyClass { NSObject.self }

  /// The object of the bytes.
  open override func transformedValue(_ value: Any?) -> Any? {
    guard let data = value as? Data else { return nil }
    return TransformableArchive.unarchive(data, classes: type(of: self).allowedTopLevelClasses)
  }

  /// The bytes of the object.
  open override func reverseTransformedValue(_ value: Any?) -> Any? {
    value.flatMap(TransformableArchive.archive)
  }
}

/// Keyed archives as transformable attributes keep them.
enum TransformableArchive {
  static func archive(_ value: Any) -> Data? {
    guard let object = archivable(value) else { return nil }
    // A value that cannot be archived is reported by validation.
    return try? NSKeyedArchiver.archivedData(withRootObject: object, requiringSecureCoding: true)
  }

  static func unarchive(_ data: Data, classes: [AnyClass]) -> Any? {
    // Bytes of unknown classes stay in the row as they are.
    guard let decoder = try? NSKeyedUnarchiver(forReadingFrom: data) else { return nil }
    decoder.requiresSecureCoding = true
    decoder.decodingFailurePolicy = .setErrorAndReturn
    defer { decoder.finishDecoding() }
    guard let object = decoder.decodeObject(of: classes, forKey: NSKeyedArchiveRootObjectKey),
      decoder.error == nil
    else { return nil }
    return native(object)
  }

  /// Swift's values as the Foundation objects that archives hold.
  private static func archivable(_ value: Any) -> NSObject? {
    switch value {
    case let value as String: NSString(string: value)
    case let value as Date:
      NSDate(timeIntervalSinceReferenceDate: value.timeIntervalSinceReferenceDate)
    case let value as Data: NSData(data: value)
    case let value as UUID: NSUUID(uuidString: value.uuidString)
    case let value as URL: NSURL(string: value.absoluteString)
    case let value as NSNumber: value
    case let value as Bool: NSNumber(value: value)
    case let value as Int: NSNumber(value: value)
    case let value as Double: NSNumber(value: value)
    case let value as NSArray: array(value.map { $0 })
    case let value as [Any]: array(value)
    case let value as [String: Any]: dictionary(value)
    case let value as NSDictionary: value
    case let value as Set<AnyHashable>: set(Array(value))
    case let value as NSObject: value is any NSCoding ? value : nil
    default: nil
    }
  }

  private static func array(_ values: [Any]) -> NSArray? {
    let objects = values.compactMap(archivable)
    return objects.count == values.count ? NSArray(array: objects) : nil
  }

  private static func set(_ values: [Any]) -> NSSet? {
    let objects = values.compactMap(archivable)
    return objects.count == values.count ? NSSet(array: objects) : nil
  }

  private static func dictionary(_ values: [String: Any]) -> NSDictionary? {
    let result = NSMutableDictionary()
    for key in values.keys.sorted() {
      guard let value = values[key], let object = archivable(value) else { return nil }
      result.setObject(object, forKey: NSString(string: key))
    }
    return result
  }

  /// Strings, dates and bytes come out as Swift's own.
  private static func native(_ object: Any) -> Any {
    switch object {
    case let object as NSString: object as String
    case let object as NSDate:
      Date(timeIntervalSinceReferenceDate: object.timeIntervalSinceReferenceDate)
    case let object as NSData: object as Data
    case let object as NSUUID: object as UUID
    case let object as NSURL: object as URL
    default: object
    }
  }
}
