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

  /// The object of the bytes; nil if they are damaged or have a class that is not in the list.
  open override func transformedValue(_ value: Any?) -> Any? {
    guard let data = value as? Data else { return nil }
    return TransformableArchive.unarchive(data, classes: type(of: self).allowedTopLevelClasses)
  }

  /// The bytes of the object; nil if it has a class that is not in the list.
  open override func reverseTransformedValue(_ value: Any?) -> Any? {
    value.flatMap {
      TransformableArchive.archive($0, classes: type(of: self).allowedTopLevelClasses)
    }
  }
}

/// The transformer with the older names, which lets objects of any class come out.
final class KeyedUnarchiveFromDataTransformer: NSSecureUnarchiveFromDataTransformer,
  @unchecked Sendable
{
  override func transformedValue(_ value: Any?) -> Any? {
    (value as? Data).flatMap { TransformableArchive.unarchive($0, classes: nil) }
  }

  override func reverseTransformedValue(_ value: Any?) -> Any? {
    value.flatMap { TransformableArchive.archive($0, classes: nil) }
  }
}
