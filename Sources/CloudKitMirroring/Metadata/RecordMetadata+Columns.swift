import Foundation
import WatershedSQLite

/// The row of a record.
extension RecordMetadata {
  package enum Column: Int, CaseIterable, MetadataColumn, Sendable {
    case id, name, recordType, entityName, key, tag, stamps, base, pending, properties, edges
    case group, sequence, sentKind, sent, parked, generation

    package var sql: String {
      switch self {
      case .id: "ID"
      case .name: "NAME"
      case .recordType: "TYPE"
      case .entityName: "ENTITY"
      case .key: "PK"
      case .tag: "TAG"
      case .stamps: "SYSTEM"
      case .base: "BASE"
      case .pending: "PENDING"
      case .properties: "PROPERTIES"
      case .edges: "EDGES"
      case .group: "GROUPING"
      case .sequence: "SEQUENCE"
      case .sentKind: "SENTKIND"
      case .sent: "SENT"
      case .parked: "PARKED"
      case .generation: "GENERATION"
      }
    }

    /// The columns of a new row; SQLite chooses its identifier.
    fileprivate static let inserted = allCases.filter { $0 != .id }
    /// The columns that an update writes: a record keeps its name.
    fileprivate static let updated = inserted.filter { $0 != .name }
  }

  private static let table = "WSMIRROR_RECORD"
  static let selection = Column.selection(from: table)
  static let insertion = Column.insertion(of: Column.inserted, into: table)
  static let update = Column.update(of: Column.updated, in: table)

  init(_ row: MetadataReader<Column>) throws {
    self.init(
      name: row.text(.name),
      recordType: row.text(.recordType),
      entityName: row.text(.entityName),
      key: row.optionalInt64(.key)
    )
    id = row.int64(.id)
    tag = row.optionalText(.tag)
    stamps = RecordStamps(encoded: row.optionalBlob(.stamps))
    base = try row.optionalBlob(.base).map(FieldBag.init(encoded:))
    pending = PendingKind(rawValue: row.int64(.pending)) ?? .nothing
    properties = Self.names(row.text(.properties))
    edges = Self.names(row.text(.edges))
    group = row.int64(.group)
    sentChange = SentChange(
      sequence: row.optionalInt64(.sequence),
      kind: PendingKind(rawValue: row.int64(.sentKind)) ?? .nothing,
      properties: Self.names(row.text(.sent))
    )
    parked = row.optionalText(.parked)
    generation = row.int64(.generation)
  }

  /// The values of `insertion`.
  var insertedValues: [SQLiteValue] { Column.inserted.map(value(of:)) }
  /// The values of `update`.
  var updatedValues: [SQLiteValue] { Column.updated.map(value(of:)) + [.integer(id)] }

  private func value(of column: Column) -> SQLiteValue {
    switch column {
    case .id: .integer(id)
    case .name: .text(name)
    case .recordType: .text(recordType)
    case .entityName: .text(entityName)
    case .key: key.map(SQLiteValue.integer) ?? .null
    case .tag: tag.map(SQLiteValue.text) ?? .null
    case .stamps: .blob(stamps.encoded)
    case .base: base.map { SQLiteValue.blob($0.encoded) } ?? .null
    case .pending: .integer(pending.rawValue)
    case .properties: .text(Self.text(properties))
    case .edges: .text(Self.text(edges))
    case .group: .integer(group)
    case .sequence: sequence.map(SQLiteValue.integer) ?? .null
    case .sentKind: .integer(sentKind.rawValue)
    case .sent: .text(Self.text(sent))
    case .parked: parked.map(SQLiteValue.text) ?? .null
    case .generation: .integer(generation)
    }
  }

  /// Property names are identifiers, so they contain no line breaks.
  private static func text(_ names: Set<String>) -> String {
    names.sorted().joined(separator: "\n")
  }

  private static func names(_ text: String) -> Set<String> {
    Set(text.split(separator: "\n").map(String.init))
  }
}
