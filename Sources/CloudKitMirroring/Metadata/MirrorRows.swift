import OpenCoreData
import WatershedSQLite

/// One write transaction of a store as the mirroring needs it.
///
/// The SQLite store's transaction conforms to it.
package protocol MirrorRows {
  /// The transaction's connection, for the metadata.
  var connection: SQLiteConnection { get }
  /// The number of the last history transaction.
  func lastTransactionNumber() throws -> Int64
  /// Up to `limit` changes by other authors than the given ones after a place in the history, merged per
  /// object, in the order of the transactions; `end` is where more follow.
  func changes(
    after position: HistoryPosition,
    limit: Int,
    excludingAuthors: Set<String>
  ) throws -> (changes: [MirrorRowChange], end: HistoryPosition?)
  /// The insertions of rows that the history still has, for some keys of one concrete entity.
  func insertions(entityName: String, keys: ClosedRange<Int64>) throws -> [Int64: RowInsertion]
  func entityName(of reference: RowReference) -> String?
  func reference(entityName: String, key: Int64) -> RowReference?
  func row(_ reference: RowReference) throws -> Row?
  /// The attributes that are nil in a row because the file of their value is missing.
  func missingFiles(of row: Row) throws -> Set<String>
  func insert(_ layout: EntityLayout, values: [RowValue]) throws -> RowReference
  func update(_ reference: RowReference, set: [Int: RowValue]) throws
  /// Deletes an object with its delete rules; returns all deleted objects, including itself.
  ///
  /// The body is called with each row before it is deleted.
  func delete(
    _ reference: RowReference,
    willDelete body: (Row) throws -> Void
  ) throws -> [RowReference]
  func destinations(
    of relationship: NSRelationshipDescription,
    from source: RowReference
  ) throws -> [RowReference]
  /// The table of a many-to-many relationship's links; nil if the store has none.
  func links(of relationship: NSRelationshipDescription, from source: RowReference) -> LinkTable?
  /// Adds a many-to-many link, unless it exists.
  func addLink(
    _ relationship: NSRelationshipDescription,
    _ source: RowReference,
    _ destination: RowReference
  ) throws
  func removeLink(
    _ relationship: NSRelationshipDescription,
    _ source: RowReference,
    _ destination: RowReference
  ) throws
  /// The objects of one concrete entity above a key, in the order of their keys.
  func references(
    entityName: String,
    after key: Int64,
    limit: Int
  ) throws -> [RowReference]
}

/// The changes of one object since a history transaction.
package struct MirrorRowChange: Hashable, Sendable {
  package enum Kind: Hashable, Sendable {
    case insert
    case update
    case delete
  }

  package var reference: RowReference
  package var kind: Kind
  /// The names of the properties that an update changed.
  package var properties: Set<String>
  /// The history transaction of the last change.
  package var transaction: Int64
  /// The insertion of the object, if it is among the changes.
  package var insertion: RowInsertion?

  package init(
    reference: RowReference,
    kind: Kind,
    properties: Set<String> = [],
    transaction: Int64,
    insertion: RowInsertion? = nil
  ) {
    self.reference = reference
    self.kind = kind
    self.properties = properties
    self.transaction = transaction
    self.insertion = insertion
  }
}
