import Foundation

/// The history of one save to one store.
///
/// ```swift
/// for transaction in transactions where transaction.author != "import" {
///   print(transaction.timestamp, transaction.changes?.count ?? 0)
///   context.mergeChanges(fromContextDidSave: transaction.objectIDNotification())
/// }
/// ```
open class NSPersistentHistoryTransaction: NSObject, NSCopying, @unchecked Sendable {
  // Sendable: immutable once the request that made it is done.

  /// The time of the save.
  public let timestamp: Date
  /// The changes; nil if the request did not ask for them.
  public internal(set) var changes: [NSPersistentHistoryChange]?
  /// The number of the transaction, which increases with each save to the store.
  public let transactionNumber: Int64
  /// The identifier of the store.
  public let storeID: String
  /// The identifier of the app that saved.
  public let bundleID: String
  /// The name of the process that saved.
  public let processID: String
  /// The name of the context that saved.
  public let contextName: String?
  /// The context's transaction author.
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

  /// The token of the position right after this transaction.
  open var token: NSPersistentHistoryToken {
    NSPersistentHistoryToken(transactionNumbers: [storeID: transactionNumber])
  }

  /// A notification like that of the save, with identifiers, for
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

  /// The entity description for history fetches of transactions.
  open class var entityDescription: NSEntityDescription? { HistoryEntities.transaction }

  /// The entity description for history fetches of transactions.
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
