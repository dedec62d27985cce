import OpenCoreData

/// The table of a many-to-many relationship's links in a store, as the objects at one end see it.
package struct LinkTable: Sendable {
  var name: String
  /// The column with the keys of these objects.
  var source: String
  /// The column with the keys of the objects at the other end.
  var destination: String
  /// The table of the objects at the other end.
  var objects: String
  /// The entities that these may be of.
  var entities: [(number: Int32, name: String)]

  /// The entity's number at the other end, in a statement on ``joined(_:)``.
  var entityNumber: String { isOfOneEntity ? "\(entities[0].number)" : "t.Z_ENT" }

  /// The links as `j`, each with the record of the object at the other end as `r`.
  ///
  /// `CROSS JOIN` and `LEFT JOIN` have SQLite read the links first, not all records
  /// (sqlite.org/optoverview.html, "Manual Control Of Query Plans Using CROSS JOIN").
  func joined(_ join: String) -> String {
    "\(name) AS j\(joinedObjects) \(join) WSMIRROR_RECORD AS r "
      + "ON r.ENTITY = \(entityName) AND r.PK = j.\(destination)"
  }

  /// A query for the link from an object to the one of a record; both are expressions of SQL, for the object's key
  /// and the record's name.
  ///
  /// It reads one record and one link, however many the object has.
  func link(from key: String, to record: String) -> String {
    """
    SELECT 1 FROM WSMIRROR_RECORD AS r
      CROSS JOIN \(name) AS j ON j.\(source) = \(key) AND j.\(destination) = r.PK\(joinedObjects)
      WHERE r.NAME = \(record) AND r.ENTITY = \(entityName)
    """
  }

  /// Whether all objects at the other end are of one entity; otherwise their table says which each is of.
  private var isOfOneEntity: Bool { entities.count == 1 }

  private var joinedObjects: String {
    isOfOneEntity ? "" : " CROSS JOIN \(objects) AS t ON t.Z_PK = j.\(destination)"
  }

  private var entityName: String {
    if isOfOneEntity { return Self.quoted(entities[0].name) }
    return "CASE t.Z_ENT "
      + entities.map { "WHEN \($0.number) THEN \(Self.quoted($0.name))" }.joined(separator: " ")
      + " END"
  }

  private static func quoted(_ text: String) -> String {
    "'" + text.replacing("'", with: "''") + "'"
  }
}

/// The links of one object in one many-to-many relationship.
struct RecordLinks {
  let table: LinkTable
  let key: Int64
  let record: String
  let relationship: ManyToManyMapping

  init(_ table: LinkTable, of key: Int64, _ record: String, _ relationship: ManyToManyMapping) {
    self.table = table
    self.key = key
    self.record = record
    self.relationship = relationship
  }

  /// The edge to a record at the other end.
  func edge(to other: String) -> Edge {
    Edge(
      relationship: relationship.edge,
      firstRecord: relationship.isFirst ? record : other,
      secondRecord: relationship.isFirst ? other : record
    )
  }

  /// The columns of an edge for this object and the one at the other end: in a relationship that is its own
  /// inverse an object may be on either side.
  var sides: [(own: String, other: String)] {
    let own = ("FIRST", "SECOND")
    let other = ("SECOND", "FIRST")
    if relationship.edge.isSymmetric { return [own, other] }
    return [relationship.isFirst ? own : other]
  }
}
