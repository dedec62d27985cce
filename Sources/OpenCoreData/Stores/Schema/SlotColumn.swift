/// The column of a row's value, and the form of the value.
package struct SlotColumn: Sendable {
  package enum Form: Sendable, Hashable {
    /// Transient: in the layout, but not in the file.
    case none
    case integer
    case double
    case date
    case decimal
    case string
    case url
    case uuid
    case data
    /// The first byte says whether the data or a file's name follows.
    case externalData
    /// The key of a row of exactly this entity.
    case key(entity: Int32)
    /// The key of a row, with its entity in a companion column or expression.
    case keyAndEntity(companion: String, isColumn: Bool)
    /// The key of a row of an entity in another store's configuration.
    case foreignKey

    /// Whether the value is a reference to a row of the store.
    var isReference: Bool {
      switch self {
      case .key, .keyAndEntity: true
      default: false
      }
    }
  }

  package var name: String
  package var form: Form
  /// Whether the store computes the value, so that a save does not write it.
  package var isDerived = false

  static let transient = SlotColumn(name: "", form: .none)

  package var isStored: Bool { form != .none }

  /// Whether the column contains the row's value unchanged, without a companion.
  var isPlain: Bool {
    switch form {
    case .none, .externalData, .foreignKey, .keyAndEntity(_, isColumn: true): false
    default: !isDerived
    }
  }
}
