import Foundation

/// Maps the bits of `ACHANGE.ZCOLUMNS` to the properties of an entity.
///
/// Bit i, the most significant first, is the i-th property in name order. A relationship to an
/// entity with subentities has two bits, as it has two key columns.
package struct HistoryColumns: @unchecked Sendable {
  // Sendable: immutable names and numbers.

  private let names: [String]
  private let positions: [String: Range<Int>]
  private let byteCount: Int
  private let rowNames: [String]
  private let toManyNames: [String]
  /// The attributes that a tombstone preserves, sorted by name, with their row indexes.
  package let preserved: [(name: String, rowIndex: Int)]

  init(layout: EntityLayout) {
    var places: [(name: String, width: Int)] = []
    for slot in layout.attributes where !slot.isTransient { places.append((slot.name, 1)) }
    for slot in layout.toOnes + layout.toManys where !slot.description.isTransient {
      places.append((slot.name, slot.destinationEntity.subentities.isEmpty ? 1 : 2))
    }
    places.sort { VersionHash.precedes($0.name, $1.name) }
    var positions: [String: Range<Int>] = [:]
    var next = 0
    for place in places {
      positions[place.name] = next..<(next + place.width)
      next += place.width
    }
    names = places.map(\.name)
    self.positions = positions
    byteCount = (next + 7) / 8
    rowNames = layout.attributes.map(\.name) + layout.toOnes.map(\.name)
    toManyNames = layout.toManys.map(\.name)
    preserved = layout.attributes
      .filter { $0.preservesInHistory && !$0.isTransient }
      .map { ($0.name, $0.index) }
      .sorted { VersionHash.precedes($0.0, $1.0) }
  }

  /// The bits of the changed properties.
  func bits(changed: [Int], changedToManys: [Int]) -> Data {
    bits(names: changed.map { rowNames[$0] } + changedToManys.map { toManyNames[$0] })
  }

  /// The positions of the properties; equal for layouts whose bits have the same meaning.
  var places: [String: Range<Int>] { positions }

  func bits(names changed: [String]) -> Data {
    var data = Data(count: byteCount)
    for name in changed {
      for bit in positions[name] ?? 0..<0 { data[bit / 8] |= 0x80 >> UInt8(bit % 8) }
    }
    return data
  }

  /// The properties whose bits are set.
  ///
  /// Bits that the model does not define are ignored.
  package func names(in bits: Data) -> [String] {
    let bytes = [UInt8](bits)
    return names.filter { name in
      (positions[name] ?? 0..<0).contains { bit in
        bit / 8 < bytes.count && bytes[bit / 8] & (0x80 >> UInt8(bit % 8)) != 0
      }
    }
  }
}
