import Foundation
import WatershedSQLite

/// Binds the attribute values of one row after the other to the parameters of an INSERT.
///
/// The usual types are bound directly; any other value of the app is converted as key-value coding
/// would.
final class BatchAttributes {
  /// The kind of value that a column stores without conversion.
  private enum Form {
    case string
    case integer
    case integer32
    case integer16
    case boolean
    case double
    case date
    case other
  }

  private let entity: EntityTable
  /// The statement of the next row, and the number of its parameters before the row's own.
  private var statement: SQLiteStatement
  private var offset = 0
  private let writer: RowWriter
  /// The parameter by row index; 0 for a column that is not written.
  private let places: [Int]
  private let forms: [Form]
  /// Slots by name; empty where there are few attributes.
  private let slots: [String: Int]
  /// The names of the attributes where there are few: comparing some short strings is cheaper than
  /// hashing one.
  private let names: [(name: String, slot: Int)]
  private static let fewNames = 16
  /// The slots of all attributes that the request may set.
  let written: [Int]
  private var given = SlotSet()
  private var givenCount = 0
  /// Whether there are derived attributes, which need all values of a row before any is bound.
  private let derives: Bool
  /// Whether an object's values can be bound without conversion.
  private let isPlain: Bool
  /// The strings of the rows that wait for their statement to run.
  private let texts = BoundTexts()

  /// The values that the app set for a row.
  enum Row {
    case dictionary([String: Any])
    /// Values by slot.
    case raw([Any?])
    /// An object's values, with the slots that were set.
    case values([RowValue], given: SlotSet)
  }

  init(_ entity: EntityTable, statement: SQLiteStatement, writer: RowWriter) {
    self.entity = entity
    self.statement = statement
    self.writer = writer
    derives = !entity.derivations.isEmpty
    isPlain = !derives && entity.externalSlots.isEmpty
    let attributes = entity.layout.attributes
    let derived = Set(entity.derivations.targets)
    written = attributes.indices.filter {
      entity.columns[$0].isStored && !entity.columns[$0].isDerived && !derived.contains($0)
    }
    places = entity.write.places
    forms = attributes.map { slot in
      if entity.columns[slot.index].form == .externalData { return .other }
      switch slot.type {
      case .stringAttributeType: return .string
      case .integer64AttributeType: return .integer
      case .integer32AttributeType: return .integer32
      case .integer16AttributeType: return .integer16
      case .booleanAttributeType: return .boolean
      case .doubleAttributeType: return .double
      case .dateAttributeType: return .date
      default: return .other
      }
    }
    let names = written.map { (name: attributes[$0].name, slot: $0) }
    let areFew = names.count <= Self.fewNames
    self.names = areFew ? names : []
    slots =
      areFew
      ? [:]
      : Dictionary(names.map { ($0.name, $0.slot) }, uniquingKeysWith: { first, _ in first })
  }

  /// Binds the next row to the parameters of one row of a statement.
  func aim(at statement: SQLiteStatement, row: Int) {
    self.statement = statement
    offset = row * entity.write.width
  }

  /// Releases the strings of the bound rows, which have been written.
  func settle() { texts.removeAll() }

  /// The number of attributes, for dictionaries by slot.
  var width: Int { entity.layout.attributes.count }

  func slot(of name: String) -> Int? {
    for entry in names where entry.name == name { return entry.slot }
    return slots[name]
  }

  func composite(named name: String) -> CompositeSlot? { entity.layout.composite(named: name) }

  func name(of slot: Int) -> String { entity.layout.attributes[slot].name }

  func isGiven(_ slot: Int) -> Bool { given.contains(slot) }

  /// Binds NULL to relationships, which a batch does not set.
  func bindRelationships() {
    for slot in entity.layout.toOnes {
      guard let index = slot.rowIndex, places[index] > 0 else { continue }
      statement.bindNull(at: offset + places[index])
      if case .keyAndEntity(_, true) = entity.columns[index].form {
        statement.bindNull(at: offset + places[index] + 1)
      }
    }
  }

  // MARK: Rows

  /// The row of a dictionary, with the attributes of composites flattened.
  func row(_ given: [String: Any]) throws -> Row {
    if entity.layout.composites.isEmpty { return .dictionary(given) }
    var result = given
    for (name, composite) in entity.layout.composites {
      guard let value = result.removeValue(forKey: name) else { continue }
      guard let leaves = composite.leafValues(of: value) else {
        throw BatchValue.unacceptable(value, name, "NSDictionary")
      }
      for (slot, value) in leaves { result[self.name(of: slot)] = value }
    }
    return .dictionary(result)
  }

  func bind(_ row: Row) throws {
    given.removeAll()
    givenCount = 0
    switch row {
    case .dictionary(let values):
      for (key, value) in values {
        if let slot = slot(of: key) { try bindGiven(value, slot) }
      }
    case .raw(let values):
      for slot in written {
        if let value = values[slot] { try bindGiven(value, slot) }
      }
    case .values(let values, let given):
      self.given = given
      if !derives { return try bind(values) }
    }
    if derives { return try bindAll(try values(of: row)) }
    try bindDefaults()
  }

  /// Binds an object's values.
  private func bind(_ values: [RowValue]) throws {
    guard isPlain else {
      for slot in written { try bind(values[slot], slot) }
      return
    }
    values.withUnsafeBufferPointer { values in
      for slot in written {
        let place = offset + places[slot]
        if case .string(let text) = values[slot] {
          texts.bind(text, to: statement, at: place)
        } else {
          RowCoding.bind(values[slot], to: statement, at: place)
        }
      }
    }
  }

  /// Binds the default values of attributes that the app did not set.
  private func bindDefaults() throws {
    guard givenCount < written.count else { return }
    for slot in written where !given.contains(slot) {
      try bind(defaultValue(slot), slot)
    }
  }

  private func defaultValue(_ slot: Int) throws -> RowValue {
    let attribute = entity.layout.attributes[slot]
    guard attribute.holdsObjects, let value = attribute.description.defaultValue else {
      return attribute.defaultRowValue
    }
    return try BatchValue.row(value, of: attribute)
  }

  private func bindAll(_ values: [RowValue]) throws {
    var values = values
    entity.derivations.apply(to: &values, now: writer.now)
    for slot in values.indices where places[slot] > 0 && slot < width {
      try bind(values[slot], slot)
    }
  }

  /// The values by row index: attributes as set or by default, no relationships.
  func values(of row: Row) throws -> [RowValue] {
    var values = [RowValue](repeating: .null, count: entity.layout.rowWidth)
    for slot in written {
      let attribute = entity.layout.attributes[slot]
      let value: Any?
      switch row {
      case .values(let own, _):
        values[slot] = own[slot]
        continue
      case .dictionary(let dictionary): value = dictionary[attribute.name]
      case .raw(let own): value = own[slot]
      }
      values[slot] =
        try value.map { try BatchValue.row($0, of: attribute) } ?? defaultValue(slot)
    }
    return values
  }

  // MARK: Values

  private func bind(_ value: RowValue, _ slot: Int) throws {
    try writer.bind(value, entity.columns[slot], to: statement, at: offset + places[slot])
  }

  @inline(__always)
  private func bindGiven(_ value: Any, _ slot: Int) throws {
    given.insert(slot)
    givenCount += 1
    guard !derives else { return }
    let place = offset + places[slot]
    switch forms[slot] {
    case .string:
      if let value = value as? String { return texts.bind(value, to: statement, at: place) }
    case .integer:
      if let value = value as? Int { return statement.bind(Int64(value), at: place) }
      if let value = value as? Int64 { return statement.bind(value, at: place) }
    case .integer32:
      if let value = value as? Int32 { return statement.bind(Int64(value), at: place) }
      if let value = value as? Int {
        return statement.bind(Int64(Int32(truncatingIfNeeded: value)), at: place)
      }
    case .integer16:
      if let value = value as? Int16 { return statement.bind(Int64(value), at: place) }
      if let value = value as? Int {
        return statement.bind(Int64(Int16(truncatingIfNeeded: value)), at: place)
      }
    case .boolean:
      if let value = value as? Bool { return statement.bind(value ? 1 : 0 as Int64, at: place) }
    case .double:
      if let value = value as? Double { return statement.bind(value, at: place) }
    case .date:
      if let value = value as? Date {
        return statement.bind(value.timeIntervalSinceReferenceDate, at: place)
      }
    case .other: break
    }
    try bind(try BatchValue.row(value, of: entity.layout.attributes[slot]), slot)
  }
}
