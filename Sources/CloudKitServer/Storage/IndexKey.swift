import Foundation

/// A value as bytes whose order is the order of the values: the key of an index entry.
///
/// It does not depend on a database's collation, so every engine returns the same order. A missing
/// value sorts first, then numbers, text by its UTF-8, and bytes. A long value is truncated, and
/// values that differ only after that share a key: a look-up of one value must test the found
/// records.
package struct IndexKey: Hashable, Sendable, Comparable {
  package var bytes: Data

  package init(bytes: Data) { self.bytes = bytes }

  /// Creates a value's key; keys of another version must not be mixed with these.
  package init(_ value: IndexValue) {
    let whole = value.orderedBytes
    bytes = whole.count > Self.limit ? whole.prefix(Self.limit) : whole
  }

  /// The version of the encoding; changing it requires new entries.
  package static let version = 1
  /// The bytes that fit into an index row of every engine.
  private static let limit = 257

  package static func < (left: IndexKey, right: IndexKey) -> Bool {
    left.bytes.lexicographicallyPrecedes(right.bytes)
  }

  /// The first key after all keys with this prefix.
  package var afterPrefix: IndexKey {
    var bytes = bytes
    // The first byte is the type and is never 0xFF.
    while let last = bytes.last {
      bytes.removeLast()
      if last < 0xFF {
        bytes.append(last + 1)
        break
      }
    }
    return IndexKey(bytes: bytes)
  }
}

extension IndexValue {
  /// The whole value as ordered bytes: two values are equal if these are.
  package var orderedBytes: Data {
    switch self {
    case .missing: return Data([0x10])
    case .integer(let value):
      // The nearest floating-point number and the remainder: exact in comparisons with doubles.
      let near = Double(value)
      // 2^63, the nearest double of the greatest integers, is not an integer of 64 bits.
      let rest = Int64(exactly: near).map { value &- $0 } ?? (value &- .max &- 1)
      return Self.number(near, rest: Int16(truncatingIfNeeded: rest))
    case .real(let value): return Self.number(value == 0 ? 0 : value, rest: 0)
    case .text(let value):
      var bytes = Data(capacity: value.utf8.count + 1)
      bytes.append(0x30)
      bytes.append(contentsOf: value.utf8)
      return bytes
    case .bytes(let value): return Data([0x40]) + value
    }
  }

  private static func number(_ value: Double, rest: Int16) -> Data {
    let sign: UInt64 = 1 << 63
    let bits = value.bitPattern
    let ordered = bits & sign == 0 ? bits | sign : ~bits
    let tail = UInt16(bitPattern: rest) ^ (1 << 15)
    var bytes = Data([0x20])
    for shift in stride(from: 56, through: 0, by: -8) {
      bytes.append(UInt8(truncatingIfNeeded: ordered >> UInt64(shift)))
    }
    bytes.append(UInt8(truncatingIfNeeded: tail >> 8))
    bytes.append(UInt8(truncatingIfNeeded: tail))
    return bytes
  }
}
