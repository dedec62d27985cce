import WatershedSQLite

/// The row of an edge.
extension EdgeMetadata {
  package enum Column: Int, CaseIterable, MetadataColumn, Sendable {
    case id, name, firstEntity, firstRelationship, firstRecord
    case secondEntity, secondRelationship, secondRecord
    case tag, stamps, pending, group, sequence, sentKind, isLinked, parked, generation

    package var sql: String {
      switch self {
      case .id: "ID"
      case .name: "NAME"
      case .firstEntity: "FIRSTENTITY"
      case .firstRelationship: "FIRSTRELATIONSHIP"
      case .firstRecord: "FIRSTRECORD"
      case .secondEntity: "SECONDENTITY"
      case .secondRelationship: "SECONDRELATIONSHIP"
      case .secondRecord: "SECONDRECORD"
      case .tag: "TAG"
      case .stamps: "SYSTEM"
      case .pending: "PENDING"
      case .group: "GROUPING"
      case .sequence: "SEQUENCE"
      case .sentKind: "SENTKIND"
      case .isLinked: "LINKED"
      case .parked: "PARKED"
      case .generation: "GENERATION"
      }
    }

    /// The columns of a new row; SQLite chooses its identifier.
    fileprivate static let inserted = allCases.filter { $0 != .id }
    /// The columns that an update writes: an edge's record keeps its name.
    fileprivate static let updated = inserted.filter { $0 != .name }
  }

  private static let table = "WSMIRROR_EDGE"
  static let selection = Column.selection(from: table)
  static let insertion = Column.insertion(of: Column.inserted, into: table)
  static let update = Column.update(of: Column.updated, in: table)

  init(_ row: MetadataReader<Column>) {
    let relationship = EdgeRelationship(
      .init(entityName: row.text(.firstEntity), relationship: row.text(.firstRelationship)),
      .init(entityName: row.text(.secondEntity), relationship: row.text(.secondRelationship))
    )
    self.init(
      name: row.text(.name),
      edge: Edge(
        relationship: relationship,
        firstRecord: row.text(.firstRecord),
        secondRecord: row.text(.secondRecord)
      )
    )
    id = row.int64(.id)
    tag = row.optionalText(.tag)
    stamps = RecordStamps(encoded: row.optionalBlob(.stamps))
    pending = PendingKind(rawValue: row.int64(.pending)) ?? .nothing
    group = row.int64(.group)
    sentChange = SentChange(
      sequence: row.optionalInt64(.sequence),
      kind: PendingKind(rawValue: row.int64(.sentKind)) ?? .nothing
    )
    isLinked = row.int64(.isLinked) != 0
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
    case .firstEntity: .text(edge.relationship.first.entityName)
    case .firstRelationship: .text(edge.relationship.first.relationship)
    case .firstRecord: .text(edge.firstRecord)
    case .secondEntity: .text(edge.relationship.second.entityName)
    case .secondRelationship: .text(edge.relationship.second.relationship)
    case .secondRecord: .text(edge.secondRecord)
    case .tag: tag.map(SQLiteValue.text) ?? .null
    case .stamps: .blob(stamps.encoded)
    case .pending: .integer(pending.rawValue)
    case .group: .integer(group)
    case .sequence: sequence.map(SQLiteValue.integer) ?? .null
    case .sentKind: .integer(sentKind.rawValue)
    case .isLinked: .integer(isLinked ? 1 : 0)
    case .parked: parked.map(SQLiteValue.text) ?? .null
    case .generation: .integer(generation)
    }
  }
}
