import Foundation

/// The columns of the table of records after the partition, in the table's order.
///
/// The table, the statements that read whole rows and the rows that a commit writes are made of this list: a
/// column without a definition and a written value does not compile, and none is read by another's position.
enum RecordColumn: Int, CaseIterable {
  case zone, name, type, tag, change
  case createdAt, createdBy, createdOn
  case modifiedAt, modifiedBy, modifiedOn
  case parent, fields, contents, deleted
  case share, entered, seen
  case sharing

  var definition: StorageTable.Column {
    switch self {
    case .zone: .integer("zone")
    case .name: .text("name")
    case .type: .text("type")
    case .tag: .text("tag")
    case .change: .integer("change")
    case .createdAt: .integer("created_at")
    case .createdBy: .text("created_by")
    case .createdOn: .text("created_on")
    case .modifiedAt: .integer("modified_at")
    case .modifiedBy: .text("modified_by")
    case .modifiedOn: .text("modified_on")
    case .parent: .text("parent").optional
    case .fields: .bytes("fields")
    case .contents: .integer("contents")
    case .deleted: .integer("deleted")
    case .share: .text("share").optional
    case .entered: .integer("entered")
    case .seen: .integer("seen")
    case .sharing: .bytes("sharing").optional
    }
  }

  /// The column's value in the row of a record.
  func value(of record: StoredRecord) -> SQLValue {
    switch self {
    case .zone: .integer(record.key.zone.rawValue)
    case .name: .text(record.key.name)
    case .type: .text(record.type)
    case .tag: .text(record.tag)
    case .change: .integer(record.change.rawValue)
    case .createdAt: .integer(record.created.timestamp)
    case .createdBy: .text(record.created.userRecordName ?? "")
    case .createdOn: .text(record.created.deviceID ?? "")
    case .modifiedAt: .integer(record.modified.timestamp)
    case .modifiedBy: .text(record.modified.userRecordName ?? "")
    case .modifiedOn: .text(record.modified.deviceID ?? "")
    case .parent: .optional(record.parent)
    case .fields: .bytes(record.fields)
    case .contents: .integer(record.contents.rawValue)
    case .deleted: .integer(record.isDeleted ? 1 : 0)
    case .share: .optional(record.membership?.share)
    case .entered: .integer(record.membership?.entered.rawValue ?? 0)
    case .seen: .integer(record.membership?.seen.rawValue ?? 0)
    case .sharing: .optional(record.sharing)
    }
  }
}

/// Values of a row that was read with `SQLStatement.recordColumns`.
extension SQLRow {
  func int64(_ column: RecordColumn) -> Int64 { int64(column.rawValue) }
  func text(_ column: RecordColumn) -> String { text(column.rawValue) }
  func optionalText(_ column: RecordColumn) -> String? { optionalText(column.rawValue) }
  func blob(_ column: RecordColumn) -> Data { blob(column.rawValue) }
  func optionalBlob(_ column: RecordColumn) -> Data? { optionalBlob(column.rawValue) }
}
