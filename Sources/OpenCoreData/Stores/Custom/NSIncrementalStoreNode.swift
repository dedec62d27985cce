import Foundation
import Synchronization

/// An incremental store's values of one object.
open class NSIncrementalStoreNode: NSObject, @unchecked Sendable {
  // Sendable: the mutex guards the contents, which an update replaces.

  private struct Contents: @unchecked Sendable {
    // Unchecked: the values are property values, which are not mutated.
    var values: [String: Any]
    var version: UInt64
  }

  /// The identifier of the object.
  public let objectID: NSManagedObjectID
  private let contents: Mutex<Contents>

  /// Creates a node.
  ///
  /// The values are those of attributes by name, and identifiers or `NSNull` of to-one
  /// relationships; an omitted to-one is read with `newValue(forRelationship:forObjectWith:with:)`.
  public init(objectID: NSManagedObjectID, withValues values: [String: Any], version: UInt64) {
    self.objectID = objectID
    contents = Mutex(Contents(values: values, version: version))
    super.init()
  }

  /// The version of the values, which detects conflicts.
  open var version: UInt64 { contents.withLock { $0.version } }

  /// Replaces the values.
  open func update(withValues values: [String: Any], version: UInt64) {
    contents.withLock { $0 = Contents(values: values, version: version) }
  }

  /// The value of a property; `NSNull` for a to-one without a destination, nil for an omitted one.
  open func value(for prop: NSPropertyDescription) -> Any? {
    contents.withLock { $0.values[prop.name] }
  }
}
