/// Finds the stored members of to-many relationships whose links are in no to-one: those of a join
/// table, and those of a relationship without an inverse.
package struct MemberQuery: Sendable {
  /// The table and the columns of the links; a link with the columns exchanged is the inverse's.
  let table: String
  let source: String
  let destination: String
  /// The number of the root entity of the members.
  let rootNumber: Int32
  /// Selects the keys of sources and destinations; it takes the keys of the sources, as a JSON array.
  let select: String

  /// The relationships of the entity whose delete rule deletes each member, or denies the deletion.
  static func all(of table: EntityTable, in schema: StoreSchema) -> [MemberQuery] {
    zip(table.layout.toManys, table.links).compactMap { slot, link in
      guard slot.deleteRule == .cascadeDeleteRule || slot.deleteRule == .denyDeleteRule,
        let members = schema.entity(slot.destinationEntity)
      else { return nil }
      switch link {
      case .join(let table, let source, let destination, _):
        return MemberQuery(table, source, destination, members.rootNumber)
      case .foreignKey(let table, let column, _, true):
        return MemberQuery(table, column, "Z_PK", members.rootNumber)
      case .foreignKey, .absent: return nil
      }
    }
  }

  private init(_ table: String, _ source: String, _ destination: String, _ rootNumber: Int32) {
    self.table = table
    self.source = source
    self.destination = destination
    self.rootNumber = rootNumber
    select =
      "SELECT \(source), \(destination) FROM \(table) "
      + "WHERE \(source) IN (SELECT value FROM json_each(?))"
  }
}
