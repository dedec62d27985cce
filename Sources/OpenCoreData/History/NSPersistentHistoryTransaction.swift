import Foundation

/// One save of one store, as its history tells it.
open class NSPersistentHistoryTransaction: NSObject, NSCopying, @unchecked Sendable {
  // Sendable: immutable once the request that made it is done.

  /// When the save happened.
  public let timestamp: Date
  /// What was changed; nil where the request did not ask for it.
  public internal(set) var changes: [NSPersistentHistoryChange]?
  /// The number of the transaction, growing with each save of the store.
  public let transactionNumber: Int64
  /// The identifier of the store.
  public let storeID: String
  /// The identifier of the app that saved.
  public let bundleID: String
  /// The name of the process that saved.
  public let processID: String
  /// The name of the context that saved.
  public let contextName: String?
  /// The author that the context named.
  public let author: String?

  init(
    timestamp: Date,
    transactionNumber: Int64,
    storeID: String,
    bundleID: String,
    processID: String,
    contextName: String?,
    author: String?
  ) {
    self.timestamp = timestamp
    self.transactionNumber = transactionNumber
    self.storeID = storeID
    self.bundleID = bundleID
    self.processID = processID
    self.contextName = contextName
    self.author = author
    super.init()
  }

  /// The place in the history right after this transaction.
  open var token: NSPersistentHistoryToken {
    NSPersistentHistoryToken(transactionNumbers: [storeID: transactionNumber])
  }

  /// A notification like the one of the save, with identifiers, for
  /// `mergeChanges(fromContextDidSave:)`.
  open func objectIDNotification() -> Notification {
    var sets: [String: Set<NSManagedObjectID>] = [:]
    for change in changes ?? [] {
      let key =
        switch change.changeType {
        case .insert: "inserted_objectIDs"
        case .update: "updated_objectIDs"
        case .delete: "deleted_objectIDs"
        }
      sets[key, default: []].insert(change.changedObjectID)
    }
    return Notification(
      name: Notification.Name("NSManagedObjectContextDidSaveObjectIDsNotification"),
      object: nil,
      userInfo: sets
    )
  }

  /// The entity that history fetches of transactions are made for.
  open class var entityDescription: NSEntityDescription? { HistoryEntities.transaction }

  /// The entity that history fetches of transactions are made for.
  open class func entityDescription(with context: NSManagedObjectContext) -> NSEntityDescription? {
    HistoryEntities.transaction
  }

  /// A new fetch request for transactions.
  open class var fetchRequest: NSFetchRequest<any NSFetchRequestResult>? {
    HistoryEntities.request(for: HistoryEntities.transaction)
  }

  /// The transaction itself: it never changes.
  open func copy(with zone: NSZone? = nil) -> Any { self }
}

extension NSPersistentHistoryTransaction: KeyValueCoding {
  package func value(forKey key: String) -> Any? {
    switch key {
    case "timestamp": timestamp
    case "transactionNumber": NSNumber(value: transactionNumber)
    case "storeID": storeID
    case "bundleID": bundleID
    case "processID": processID
    case "contextName": contextName
    case "author": author
    case "token": token
    case "changes": changes
    default: nil
    }
  }
}
