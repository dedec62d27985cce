import Foundation

/// What a save did to one object.
open class NSPersistentHistoryChange: NSObject, NSCopying, @unchecked Sendable {
  // Sendable: immutable once the request that made it is done.

  /// The number of the change, growing within the store.
  public let changeID: Int64
  /// The object that was changed.
  public let changedObjectID: NSManagedObjectID
  /// What happened to it.
  public let changeType: NSPersistentHistoryChangeType
  /// What a deleted object's preserved attributes held.
  public let tombstone: [AnyHashable: Any]?
  /// The save that the change belongs to.
  public internal(set) weak var transaction: NSPersistentHistoryTransaction?
  /// Set where the change was asked for without its transaction, which nobody else keeps then.
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

  /// The entity that history fetches of changes are made for.
  open class var entityDescription: NSEntityDescription? { HistoryEntities.change }

  /// The entity that history fetches of changes are made for.
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
