import Foundation
import WatershedSQLite

/// The stored values of one object at one version.
///
/// Immutable and shared by all readers. It is one block of memory: a header, a slot of two words
/// for each value, and the bytes of strings and data after them; see Documentation/Decisions/0009.
/// A string becomes a `String` when it is read.
package struct Row: @unchecked Sendable {
  // Unchecked: its memory is written before it is shared, and only read afterwards.

  let storage: RowStorage

  package init(reference: RowReference, version: Int64, values: [RowValue]) {
    storage = values.withUnsafeBufferPointer {
      RowBuilder.row(reference: reference, version: version, values: $0)
    }
  }

  @inline(__always)
  init(storage: RowStorage) {
    self.storage = storage
  }

  @inline(__always)
  package var reference: RowReference {
    RowReference(entityNumber: storage.header.entityNumber, key: storage.header.key)
  }

  /// `Z_OPT`: 1 after the insertion, incremented by each saved update.
  @inline(__always)
  package var version: Int64 { storage.header.version }

  /// The number of values.
  @inline(__always)
  package var count: Int { Int(storage.header.count) }

  /// The value at a row index: attributes first, then to-ones.
  @inline(__always)
  package subscript(index: Int) -> RowValue { storage.value(at: index) }

  /// All values by row index; each call creates them.
  package var values: [RowValue] {
    // All empty arrays share one buffer, to which this initializer would write.
    guard count > 0 else { return [] }
    let storage = storage
    return [RowValue](unsafeUninitializedCapacity: count) { buffer, made in
      guard let base = buffer.baseAddress else { return }
      for index in buffer.indices where index < count {
        (base + index).initialize(to: storage.value(at: index))
      }
      made = count
    }
  }

  /// Whether the row has this value; strings are compared by their bytes.
  package func holds(_ value: RowValue, at index: Int) -> Bool {
    guard case .string(let text) = value else { return self[index] == value }
    return storage.withUnsafeMutablePointers { header, slots in
      precondition(index >= 0 && index < Int(header.pointee.count))
      let slot = slots[index]
      guard slot.kind == .string else { return storage.value(at: index) == value }
      return text.withBytes { $0.elementsEqual(RowStorage.bytes(slot, slots)) }
    }
  }

  /// The memory of the row in bytes.
  var byteCount: Int {
    let boxed = storage.header.boxes?.byteCount ?? 0
    return RowStorage.fixedBytes + Int(storage.header.size) + boxed
  }
}

extension Row {
  /// Binds a value without copying it; false for types that can't be bound directly.
  ///
  /// The row must stay alive until the statement has run.
  @inline(__always)
  func bind(_ index: Int, to statement: SQLiteStatement, at parameter: Int) -> Bool {
    storage.withUnsafeMutablePointers { header, slots in
      precondition(index >= 0 && index < Int(header.pointee.count))
      let slot = slots[index]
      switch slot.kind {
      case .null: statement.bindNull(at: parameter)
      case .integer, .reference:
        statement.bind(Int64(bitPattern: slot.word), at: parameter)
      case .double, .date: statement.bind(Double(bitPattern: slot.word), at: parameter)
      case .string:
        statement.bindText(lastingBytes: RowStorage.bytes(slot, slots), at: parameter)
      default: return false
      }
      return true
    }
  }
}

/// The header of a row's memory.
struct RowHeader {
  var key: Int64
  var version: Int64
  var entityNumber: Int32
  var count: UInt16
  /// The bytes behind the header: slots, strings, data.
  var size: UInt32
  /// The values that are too large for the row's own memory.
  var boxes: RowBoxes?
}

/// One value: a number, or the position of its bytes.
///
/// All slots have the same size, so that a value's position follows from its index.
struct RowSlot {
  enum Kind: UInt8 {
    case null
    case integer
    case double
    case date
    /// `word` is the key, `extra` the entity's number.
    case reference
    /// `word` is the offset of the bytes from the first slot; `extra` is their count.
    case string
    case data
    case uuid
    case decimal
    case url
    /// `word` is the index in the boxes.
    case boxed
  }

  var word: UInt64
  var extra: UInt32
  var kind: Kind

  static let null = RowSlot(word: 0, extra: 0, kind: .null)
}

/// Values that are shared instead of copied, because they are large.
final class RowBoxes: Sendable {
  enum Box: Sendable {
    case value(RowValue)
    case file(ExternalFile)
  }

  let byteCount: Int
  private let boxes: [Box]

  init(_ boxes: [Box], byteCount: Int) {
    self.boxes = boxes
    self.byteCount = byteCount
  }

  func value(at index: Int) -> RowValue {
    switch boxes[index] {
    case .value(let value): value
    case .file(let file): file.data.map(RowValue.data) ?? .null
    }
  }
}

final class RowStorage: ManagedBuffer<RowHeader, RowSlot> {
  /// The size of an instance without its slots and bytes.
  static let fixedBytes = 16 + MemoryLayout<RowHeader>.stride

  @inline(__always)
  func value(at index: Int) -> RowValue {
    withUnsafeMutablePointers { header, slots in
      precondition(index >= 0 && index < Int(header.pointee.count))
      let slot = slots[index]
      switch slot.kind {
      case .null: return .null
      case .integer: return .integer(Int64(bitPattern: slot.word))
      case .double: return .double(Double(bitPattern: slot.word))
      case .date: return .date(Double(bitPattern: slot.word))
      case .reference:
        return .reference(
          RowReference(
            entityNumber: Int32(bitPattern: slot.extra),
            key: Int64(bitPattern: slot.word)
          )
        )
      case .string: return .string(Self.string(slot, slots))
      default: return Self.rare(slot, header, slots)
      }
    }
  }

  @inline(__always)
  static func bytes(
    _ slot: RowSlot,
    _ slots: UnsafeMutablePointer<RowSlot>
  ) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(
      start: UnsafeRawPointer(slots) + Int(slot.word),
      count: Int(slot.extra)
    )
  }

  @inline(__always)
  private static func string(_ slot: RowSlot, _ slots: UnsafeMutablePointer<RowSlot>) -> String {
    String(decoding: bytes(slot, slots), as: UTF8.self)
  }

  @inline(never)
  private static func rare(
    _ slot: RowSlot,
    _ header: UnsafeMutablePointer<RowHeader>,
    _ slots: UnsafeMutablePointer<RowSlot>
  ) -> RowValue {
    switch slot.kind {
    case .data: .data(Data(bytes(slot, slots)))
    case .uuid: .uuid(UUID(uuid: bytes(slot, slots).loadUnaligned(as: uuid_t.self)))
    case .decimal:
      .decimal(RowDecimal(bytes(slot, slots).loadUnaligned(as: Decimal.self)))
    case .url: RowCoding.url(string(slot, slots))
    case .boxed: header.pointee.boxes?.value(at: Int(slot.word)) ?? .null
    default: .null
    }
  }
}
