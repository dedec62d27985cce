/// Finds the rows whose to-one leads to rows of an entity, by the index of the to-one's column.
package struct ReferrerQuery: Sendable {
  /// The to-one.
  let name: String
  /// Whether a row that still refers to a deleted row is a conflict: the delete rule is cascade or deny,
  /// or the to-one is required.
  let isRequired: Bool
  /// Selects entity numbers and keys; it takes the keys of the rows that are led to, as a JSON array.
  let select: String

  /// The to-ones that are the inverse of a relationship of the entity, but for those whose references
  /// its delete rule leaves as they are.
  static func all(of table: EntityTable, in schema: StoreSchema) -> [ReferrerQuery] {
    (table.layout.toOnes + table.layout.toManys).compactMap { slot in
      guard slot.deleteRule != .noActionDeleteRule, let inverse = slot.inverse, !inverse.isToMany,
        let destination = schema.entity(slot.destinationEntity),
        case .toOne(let index) = destination.layout.slot(named: inverse.name),
        let rowIndex = destination.layout.toOnes[index].rowIndex
      else { return nil }
      let column = destination.columns[rowIndex]
      switch column.form {
      case .key, .keyAndEntity: break
      default: return nil
      }
      return ReferrerQuery(
        name: inverse.name,
        isRequired: slot.deleteRule != .nullifyDeleteRule || !inverse.isOptional,
        select: "SELECT Z_ENT, Z_PK FROM \(destination.table) "
          + "WHERE \(column.name) IN (SELECT value FROM json_each(?))"
      )
    }
  }
}
