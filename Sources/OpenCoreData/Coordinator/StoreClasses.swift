import Foundation
import Synchronization

/// The classes of stores by type, including those that apps register.
final class StoreClasses: Sendable {
  static let shared = StoreClasses()

  private let classes = Mutex<[String: NSPersistentStore.Type]>([
    NSSQLiteStoreType: SQLiteStore.self,
    NSInMemoryStoreType: SQLiteStore.self,
    NSBinaryStoreType: BinaryStore.self,
  ])

  func register(_ storeClass: NSPersistentStore.Type?, for type: String) {
    classes.withLock { $0[type] = storeClass }
  }

  func storeClass(of type: String) -> NSPersistentStore.Type? {
    classes.withLock { $0[type] }
  }

  /// The class of a type whose stores are made as those of apps.
  func customClass(of type: String) -> (any CustomStore.Type)? {
    storeClass(of: type) as? any CustomStore.Type
  }

  func isRegistered(_ type: String) -> Bool { storeClass(of: type) != nil }

  var types: [String] { classes.withLock { $0.keys.sorted() } }
}

extension NSPersistentStoreCoordinator {
  /// Registers the class of stores of a type: a subclass of `NSAtomicStore` or
  /// `NSIncrementalStore`; nil unregisters the type.
  public class func registerStoreClass(_ storeClass: AnyClass?, forStoreType storeType: String) {
    guard let storeClass else { return StoreClasses.shared.register(nil, for: storeType) }
    guard let storeClass = storeClass as? NSPersistentStore.Type else {
      preconditionFailure("\(storeClass) is not a subclass of NSPersistentStore.")
    }
    StoreClasses.shared.register(storeClass, for: storeType)
  }

  /// Registers the class of stores of a type: a subclass of `NSAtomicStore` or
  /// `NSIncrementalStore`; nil unregisters the type.
  public class func registerStoreClass(
    _ storeClass: AnyClass?,
    type storeType: NSPersistentStore.StoreType
  ) {
    registerStoreClass(storeClass, forStoreType: storeType.rawValue)
  }

  /// The types that stores can be opened with.
  ///
  /// **Differs from Core Data:** a value is a number that identifies the class, not a pointer that
  /// can be messaged, because there is no Objective-C runtime.
  public class var registeredStoreTypes: [String: NSValue] {
    var result: [String: NSValue] = [:]
    for type in StoreClasses.shared.types {
      guard let storeClass = StoreClasses.shared.storeClass(of: type) else { continue }
      let number = UInt(bitPattern: ObjectIdentifier(storeClass).hashValue)
      result[type] = NSNumber(value: number)
    }
    return result
  }
}
