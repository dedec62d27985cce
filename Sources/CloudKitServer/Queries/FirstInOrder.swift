import CloudKitWebServices
import Foundation

/// The first records in an order, out of any number of inserted ones.
struct FirstInOrder {
  let order: QueryOrder
  let count: Int
  /// The limit for the bytes of records in memory; beyond it records are dropped and read again.
  let bytes: Int
  private var found: [Entry] = []
  private var held = 0

  private struct Entry {
    var position: QueryPosition
    /// Nil if the record was dropped, since the records exceeded the limit, and has to be read
    /// again.
    var record: StoredRecord?
  }

  init(order: QueryOrder, count: Int, bytes: Int) {
    self.order = order
    self.count = count
    self.bytes = bytes
  }

  /// Whether the maximum number of records was inserted.
  var isFull: Bool { found.count >= count }

  /// Whether it is full, and all its records sort before this first key.
  mutating func isWithin(_ key: Data) -> Bool {
    guard isFull else { return false }
    settle()
    return found.last?.position.keys.first?.lexicographicallyPrecedes(key) ?? false
  }

  mutating func insert(_ record: StoredRecord, at position: QueryPosition) {
    held += record.fields.count
    found.append(Entry(position: position, record: record))
    if found.count >= 4 * count { settle() }
    guard held > bytes else { return }
    for index in found.indices { found[index].record = nil }
    held = 0
  }

  /// Removes the records of one group.
  mutating func remove(withFirstKey key: Data) {
    found.removeAll { $0.position.keys.first == key }
  }

  private mutating func settle() {
    found.sort { order.precedes($0.position, $1.position) }
    if found.count > count { found.removeLast(found.count - count) }
    held = found.reduce(0) { $0 + ($1.record?.fields.count ?? 0) }
  }

  /// The first records as a page, limited by number and by the weight of its records.
  mutating func page(
    limit: Int,
    weight: (StoredRecord) -> Int,
    read: ([RecordKey]) throws -> [RecordKey: StoredRecord]
  ) throws -> QueryRun.Page {
    settle()
    var page = QueryRun.Page()
    var sum = 0
    var last: QueryPosition?
    for start in stride(from: 0, to: min(limit, found.count), by: Self.recordsPerRead) {
      let piece = found[start..<min(start + Self.recordsPerRead, limit, found.count)]
      guard page.records.isEmpty || sum < bytes else { break }
      let missing = piece.filter { $0.record == nil }.map(\.position.record)
      let records = missing.isEmpty ? [:] : try read(missing)
      for entry in piece {
        guard page.records.isEmpty || sum < bytes else { break }
        last = entry.position
        guard let record = entry.record ?? records[entry.position.record] else { continue }
        page.records.append(record)
        sum += weight(record)
      }
    }
    if let last, last != found.last?.position { page.marker = QueryMarker(position: last) }
    return page
  }

  private static let recordsPerRead = 32
}
