/// Where one value of a row lives in its table, and in what form.
package struct SlotColumn: Sendable {
  package enum Form: Sendable, Hashable {
    /// Transient: in the layout but not in the file.
    case none
    case integer
    case double
    case date
    case decimal
    case string
    case url
    case uuid
    case data
    /// The first byte says whether the data follows or a file's name does.
    case externalData
    /// A key of a row that is of exactly this entity.
    case key(entity: Int32)
    /// A key, with the row's entity in a companion column or expression.
    case keyAndEntity(companion: String, isColumn: Bool)
    /// A key into an entity that is in another store's configuration.
    case foreignKey
  }

  package var name: String
  package var form: Form
  /// The store computes the value; a save does not write it.
  package var isDerived = false

  static let transient = SlotColumn(name: "", form: .none)

  package var isStored: Bool { form != .none }

  /// Whether a row's value goes into the column as it is, and nothing else with it.
  var isPlain: Bool {
    switch form {
    case .none, .externalData, .foreignKey, .keyAndEntity(_, isColumn: true): false
    default: !isDerived
    }
  }
}
