import Foundation

/// A record as its row has it, all columns in one piece of memory.
///
/// Feeds read records by the thousand and copy most of their bytes into the answer as they are: a
/// string for each column would be made only to be taken apart again.
package struct RecordRow: Sendable {
  /// The columns of text and bytes, in the order of `SQLSnapshot.recordColumns`.
  enum Column: Int, CaseIterable {
    case name, type, tag, createdBy, createdOn, modifiedBy, modifiedOn, parent, fields, share
    case sharing
  }

  let zone: ZoneNumber
  package let change: ChangeNumber
  let createdAt: Int64
  let modifiedAt: Int64
  let contents: RecordContents
  package let isDeleted: Bool
  /// Where it stands in the feed of those who take part in its share; zero outside of shares.
  let seen: ChangeNumber
  /// One column behind the other.
  private let bytes: [UInt8]
  private let ends: [11 of Int]

  /// Reads a row of `SQLSnapshot.recordColumns`.
  init(_ row: some SQLRow) {
    zone = ZoneNumber(row.int64(0))
    change = ChangeNumber(row.int64(4))
    createdAt = row.int64(5)
    modifiedAt = row.int64(8)
    contents = RecordContents(rawValue: row.int64(13))
    isDeleted = row.int64(14) != 0
    seen = ChangeNumber(row.int64(17))
    var columns = Columns(repeating: UnsafeRawBufferPointer(start: nil, count: 0))
    for index in Self.places.indices { columns[index] = row.blobBytes(Self.places[index]) }
    (bytes, ends) = Self.packed(columns)
  }

  private typealias Columns = [11 of UnsafeRawBufferPointer]

  /// Where the columns stand in a row.
  private static let places: [11 of Int] = [1, 2, 3, 6, 7, 9, 10, 11, 12, 15, 18]

  /// All columns in one allocation.
  private static func packed(_ columns: Columns) -> (bytes: [UInt8], ends: [11 of Int]) {
    var ends = [11 of Int](repeating: 0)
    var size = 0
    for index in columns.indices {
      size += columns[index].count
      ends[index] = size
    }
    let bytes = [UInt8](unsafeUninitializedCapacity: size) { memory, count in
      let memory = UnsafeMutableRawBufferPointer(memory)
      for index in columns.indices {
        let column = columns[index]
        let start = ends[index] - column.count
        UnsafeMutableRawBufferPointer(rebasing: memory[start...]).copyMemory(from: column)
      }
      count = size
    }
    return (bytes, ends)
  }

  /// A record that a writer holds.
  init(_ record: StoredRecord) {
    zone = record.key.zone
    change = record.change
    createdAt = record.created.timestamp
    modifiedAt = record.modified.timestamp
    contents = record.contents
    isDeleted = record.isDeleted
    seen = record.membership?.seen ?? .zero
    var bytes: [UInt8] = []
    bytes.reserveCapacity(record.fields.count + 256)
    var ends = [11 of Int](repeating: 0)
    for column in Column.allCases {
      switch column {
      case .name: bytes += record.key.name.utf8
      case .type: bytes += record.type.utf8
      case .tag: bytes += record.tag.utf8
      case .createdBy: bytes += (record.created.userRecordName ?? "").utf8
      case .createdOn: bytes += (record.created.deviceID ?? "").utf8
      case .modifiedBy: bytes += (record.modified.userRecordName ?? "").utf8
      case .modifiedOn: bytes += (record.modified.deviceID ?? "").utf8
      case .parent: bytes += (record.parent ?? "").utf8
      case .fields: record.fields.withUnsafeBytes { bytes += $0 }
      case .share: bytes += (record.membership?.share ?? "").utf8
      case .sharing: bytes += record.sharing ?? Data()
      }
      ends[column.rawValue] = bytes.count
    }
    self.bytes = bytes
    self.ends = ends
  }

  // MARK: Columns

  /// Bytes of all columns.
  var size: Int { bytes.count }

  /// Whether the column is NULL or empty.
  func isEmpty(_ column: Column) -> Bool { range(column).isEmpty }

  /// Lends the bytes of a column; none where it is NULL.
  func with<Result>(
    _ column: Column,
    _ body: (UnsafeRawBufferPointer) throws -> Result
  ) rethrows -> Result {
    try bytes.withUnsafeBytes { try body(UnsafeRawBufferPointer(rebasing: $0[range(column)])) }
  }

  func text(_ column: Column) -> String { with(column) { String(decoding: $0, as: UTF8.self) } }

  private func range(_ column: Column) -> Range<Int> {
    (column == .name ? 0 : ends[column.rawValue - 1])..<ends[column.rawValue]
  }

  package var key: RecordKey { RecordKey(zone: zone, name: text(.name)) }
  package var type: String { text(.type) }
}
