import CloudKitWebServices
import Foundation

/// A record's row, with all columns in one block of memory.
///
/// Feeds read thousands of records and copy most of their bytes unchanged into the reply: creating
/// a string for each column would be wasted work.
package struct RecordRow {
  /// The text and byte columns that replies contain.
  enum Column: Int, CaseIterable {
    case name, type, tag, createdBy, createdOn, modifiedBy, modifiedOn, parent, fields, sharing

    fileprivate var source: RecordColumn {
      switch self {
      case .name: .name
      case .type: .type
      case .tag: .tag
      case .createdBy: .createdBy
      case .createdOn: .createdOn
      case .modifiedBy: .modifiedBy
      case .modifiedOn: .modifiedOn
      case .parent: .parent
      case .fields: .fields
      case .sharing: .sharing
      }
    }
  }

  let zone: ZoneNumber
  package let change: ChangeNumber
  let createdAt: Int64
  let modifiedAt: Int64
  let contents: RecordContents
  package let isDeleted: Bool
  /// The record's position in the feed of its share's participants; zero outside of shares.
  let seen: ChangeNumber
  private let memory: RowMemory
  private let start: Int
  /// The end of each column, relative to the start of the row.
  private let ends: [10 of Int32]

  /// Appends a row of `SQLSnapshot.recordColumns` to the memory.
  init(_ row: some SQLRow, in memory: RowMemory) {
    zone = ZoneNumber(row.int64(.zone))
    change = ChangeNumber(row.int64(.change))
    createdAt = row.int64(.createdAt)
    modifiedAt = row.int64(.modifiedAt)
    contents = RecordContents(rawValue: row.int64(.contents))
    isDeleted = row.int64(.deleted) != 0
    seen = ChangeNumber(row.int64(.seen))
    self.memory = memory
    start = memory.count
    var ends = [10 of Int32](repeating: 0)
    for index in Self.places.indices {
      memory.append(row.blobBytes(Self.places[index]))
      ends[index] = Int32(memory.count - start)
    }
    self.ends = ends
  }

  /// The positions of the columns in a row.
  private static let places = [10 of Int] { Column.allCases[$0].source.rawValue }

  /// Creates a row of a record in memory.
  init(_ record: StoredRecord) {
    zone = record.key.zone
    change = record.change
    createdAt = record.created.timestamp
    modifiedAt = record.modified.timestamp
    contents = record.contents
    isDeleted = record.isDeleted
    seen = record.membership?.seen ?? .zero
    memory = RowMemory(capacity: record.fields.count + 256)
    start = 0
    var ends = [10 of Int32](repeating: 0)
    for column in Column.allCases {
      Self.append(column, of: record, to: memory)
      ends[column.rawValue] = Int32(memory.count)
    }
    self.ends = ends
  }

  private static func append(
    _ column: Column,
    of record: StoredRecord,
    to memory: RowMemory
  ) {
    var text: String?
    switch column {
    case .name: text = record.key.name
    case .type: text = record.type
    case .tag: text = record.tag
    case .createdBy: text = record.created.userRecordName
    case .createdOn: text = record.created.deviceID
    case .modifiedBy: text = record.modified.userRecordName
    case .modifiedOn: text = record.modified.deviceID
    case .parent: text = record.parent
    case .fields: record.fields.withUnsafeBytes { memory.append($0) }
    case .sharing: record.sharing?.withUnsafeBytes { memory.append($0) }
    }
    text?.withUTF8 { memory.append(UnsafeRawBufferPointer($0)) }
  }

  // MARK: Columns

  /// The bytes of all columns.
  var size: Int { Int(ends[9]) }

  /// Whether the column is NULL or empty.
  func isEmpty(_ column: Column) -> Bool { range(column).isEmpty }

  /// Calls the body with the bytes of a column; none if it is NULL.
  func with<Result>(
    _ column: Column,
    _ body: (UnsafeRawBufferPointer) throws -> Result
  ) rethrows -> Result {
    try memory.with(range(column), body)
  }

  func text(_ column: Column) -> String { with(column) { String(decoding: $0, as: UTF8.self) } }

  private func range(_ column: Column) -> Range<Int> {
    let first = column == .name ? 0 : Int(ends[column.rawValue - 1])
    return start + first..<start + Int(ends[column.rawValue])
  }

  package var key: RecordKey { RecordKey(zone: zone, name: text(.name)) }
  package var type: String { text(.type) }
}
