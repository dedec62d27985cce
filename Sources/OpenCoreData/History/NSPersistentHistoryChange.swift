import Foundation

/// A change of one object by a save.
///
/// ```swift
/// for change in changes where change.changedObjectID.entity.name == "Post" {
///   switch change.changeType {
///   case .insert: counts[0] += 1
///   case .update: counts[1] += change.updatedProperties?.count ?? 0
///   case .delete: counts[2] += 1
///   }
/// }
/// ```
open class NSPersistentHistoryChange: NSObject, NSCopying, @unchecked Sendable {
  // Sendable: immutable once the request that made it is done.

  /// The number of the change, which increases within the store.
  public let changeID: Int64
  /// The changed object.
  public let changedObjectID: NSManagedObjectID
  /// The kind of the change.
  public let changeType: NSPersistentHistoryChangeType
  /// The values of a deleted object's preserved attributes.
  public let tombstone: [AnyHashable: Any]?
  /// The save that the change belongs to.
  public internal(set) weak var transaction: NSPersistentHistoryTransaction?
  /// Set if the change was fetched without its transaction, which has no other owner then.
  private var keptTransaction: NSPersistentHistoryTransaction?
  /// The properties that an update changed.
  public let updatedProperties: Set<NSPropertyDescription>?

  init(
    changeID: Int64,
    changedObjectID: NSManagedObjectID,
    changeType: NSPersistentHistoryChangeType,
    tombstone: [AnyHashable: Any]?,
    updatedProperties: Set<NSPropertyDescription>?
  ) {
    self.changeID = changeID
    self.changedObjectID = changedObjectID
    self.changeType = changeType
    self.tombstone = tombstone
    self.updatedProperties = updatedProperties
    super.init()
  }

  func keepTransaction() { keptTransaction = transaction }

  /// The entity description for history fetches of changes.
  open class var entityDescription: NSEntityDescription? { HistoryEntities.change }

  /// The entity description for history fetches of changes.
  open class func entityDescription(with context: NSManagedObjectContext) -> NSEntityDescription? {
    HistoryEntities.change
  }

  /// A new fetch request for changes.
  open class var fetchRequest: NSFetchRequest<any NSFetchRequestResult>? {
    HistoryEntities.request(for: HistoryEntities.change)
  }

  /// The change itself: it never changes.
  open func copy(with zone: NSZone? = nil) -> Any { self }
}

extension NSPersistentHistoryChange: KeyValueCoding {
  package func value(forKey key: String) -> Any? {
    switch key {
    case "changeID": NSNumber(value: changeID)
    case "changedObjectID": changedObjectID
    case "changedEntity": changedObjectID.entity
    case "changeType": NSNumber(value: changeType.rawValue)
    case "tombstone": tombstone
    case "updatedProperties": updatedProperties
    case "transaction": transaction
    default: nil
    }
  }
}
