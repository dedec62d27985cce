import Foundation
import Synchronization

/// The values of one object as an incremental store has them.
open class NSIncrementalStoreNode: NSObject, @unchecked Sendable {
  // Sendable: the mutex guards what an update replaces.

  private struct Contents: @unchecked Sendable {
    // Unchecked: values are property values that nobody changes.
    var values: [String: Any]
    var version: UInt64
  }

  /// The identifier of the object.
  public let objectID: NSManagedObjectID
  private let contents: Mutex<Contents>

  /// Creates a node.
  ///
  /// The values are those of attributes by name, and identifiers or `NSNull` of to-one
  /// relationships; a to-one that is missing is asked for by
  /// `newValue(forRelationship:forObjectWith:with:)`.
  public init(objectID: NSManagedObjectID, withValues values: [String: Any], version: UInt64) {
    self.objectID = objectID
    contents = Mutex(Contents(values: values, version: version))
    super.init()
  }

  /// The version of the values, by which conflicts are found.
  open var version: UInt64 { contents.withLock { $0.version } }

  /// Replaces the values.
  open func update(withValues values: [String: Any], version: UInt64) {
    contents.withLock { $0 = Contents(values: values, version: version) }
  }

  /// The value of a property; `NSNull` is a to-one without a destination, nil one that the node
  /// says nothing of.
  open func value(for prop: NSPropertyDescription) -> Any? {
    contents.withLock { $0.values[prop.name] }
  }
}
