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

/// Something that a context asks of its stores.
open class NSPersistentStoreRequest: NSObject, NSCopying {
  /// The stores that are asked; nil asks all.
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

/// What a store answers to a request other than a fetch or a save.
open class NSPersistentStoreResult: NSObject {}

/// A type that a fetch can return.
public protocol NSFetchRequestResult: NSObjectProtocol {}

extension NSDictionary: NSFetchRequestResult {}
extension NSNumber: NSFetchRequestResult {}

/// What a fetch returns of each match.
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
  /// Dictionaries with some properties.
  public static let dictionaryResultType = NSFetchRequestResultType(rawValue: 2)
  /// How many there are.
  public static let countResultType = NSFetchRequestResultType(rawValue: 4)
}
