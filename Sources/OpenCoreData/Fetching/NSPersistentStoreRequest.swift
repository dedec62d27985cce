import Foundation

/// The kind of a request to a store.
public enum NSPersistentStoreRequestType: UInt, Sendable, Hashable {
  /// A fetch.
  case fetchRequestType = 1
  /// A save.
  case saveRequestType = 2
  /// An insertion of many rows without objects.
  case batchInsertRequestType = 5
  /// A change of many rows without objects.
  case batchUpdateRequestType = 6
  /// A deletion of many rows without objects.
  case batchDeleteRequestType = 7
}

/// A request of a context to its stores.
open class NSPersistentStoreRequest: NSObject, NSCopying {
  /// The stores that the request is sent to; nil for all stores.
  open var affectedStores: [NSPersistentStore]?

  /// Creates a request.
  public override init() {
    super.init()
  }

  /// The kind of the request.
  open var requestType: NSPersistentStoreRequestType { .fetchRequestType }

  /// Copies the request.
  open func copy(with zone: NSZone? = nil) -> Any { self }
}

/// The result of a request other than a fetch or a save.
open class NSPersistentStoreResult: NSObject {}

/// A type that a fetch can return.
public protocol NSFetchRequestResult: NSObjectProtocol {}

extension NSDictionary: NSFetchRequestResult {}
extension NSNumber: NSFetchRequestResult {}

/// The kind of a fetch's results.
public struct NSFetchRequestResultType: OptionSet, Sendable {
  /// The bits of the type.
  public let rawValue: UInt

  /// Creates a type of bits.
  public init(rawValue: UInt) {
    self.rawValue = rawValue
  }

  /// The objects.
  public static let managedObjectResultType: NSFetchRequestResultType = []
  /// The identifiers of the objects.
  public static let managedObjectIDResultType = NSFetchRequestResultType(rawValue: 1)
  /// Dictionaries with selected properties.
  public static let dictionaryResultType = NSFetchRequestResultType(rawValue: 2)
  /// The number of matches.
  public static let countResultType = NSFetchRequestResultType(rawValue: 4)
}
