/// The SQL type of an attribute, which determines the group of its column.
enum ColumnClass: Int, Comparable {
  case integer
  case floating
  case decimal
  case string
  case uuid
  case uri
  case transformable
  case binary

  static func < (left: ColumnClass, right: ColumnClass) -> Bool { left.rawValue < right.rawValue }

  init(_ type: NSAttributeType) {
    switch type {
    case .integer16AttributeType, .integer32AttributeType, .integer64AttributeType,
      .booleanAttributeType, .objectIDAttributeType:
      self = .integer
    case .doubleAttributeType, .floatAttributeType, .dateAttributeType: self = .floating
    case .decimalAttributeType: self = .decimal
    case .stringAttributeType: self = .string
    case .UUIDAttributeType: self = .uuid
    case .URIAttributeType: self = .uri
    case .transformableAttributeType, .undefinedAttributeType, .compositeAttributeType:
      self = .transformable
    case .binaryDataAttributeType: self = .binary
    }
  }

  static func sqlType(of type: NSAttributeType) -> String {
    switch ColumnClass(type) {
    case .integer: "INTEGER"
    case .floating: type == .dateAttributeType ? "TIMESTAMP" : "FLOAT"
    case .decimal: "DECIMAL"
    case .string, .uri: "VARCHAR"
    case .uuid, .transformable, .binary: "BLOB"
    }
  }

  static func form(of slot: AttributeSlot) -> SlotColumn.Form {
    switch ColumnClass(slot.type) {
    case .integer: .integer
    case .floating: slot.type == .dateAttributeType ? .date : .double
    case .decimal: .decimal
    case .string: .string
    case .uri: .url
    case .uuid: .uuid
    case .transformable, .binary: slot.allowsExternalBinary ? .externalData : .data
    }
  }
}
