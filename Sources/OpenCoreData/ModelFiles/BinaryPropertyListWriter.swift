import Foundation

/// Writes a value as a binary property list of version 00.
enum BinaryPropertyListWriter {
  private enum Flat {
    case leaf([UInt8])
    case array([Int])
    case dictionary([Int], [Int])
  }

  private struct Flattener {
    var objects: [Flat] = []
    var strings: [String: Int] = [:]

    mutating func add(_ value: ArchiveValue) -> Int {
      switch value {
      case .boolean(let value): return append(.leaf([value ? 0x09 : 0x08]))
      case .integer(let value): return append(.leaf(BinaryPropertyListWriter.integer(value)))
      case .real(let value): return append(.leaf([0x23] + bigEndian(value.bitPattern, 8)))
      case .data(let value):
        return append(.leaf(header(0x40, value.count) + [UInt8](value)))
      case .reference(let value):
        let bytes = minimalBytes(UInt64(value))
        return append(.leaf([0x80 | UInt8(bytes.count - 1)] + bytes))
      case .string(let text):
        if let known = strings[text] { return known }
        let place = append(.leaf(BinaryPropertyListWriter.string(text)))
        strings[text] = place
        return place
      case .array(let members):
        let place = append(.array([]))
        objects[place] = .array(members.map { add($0) })
        return place
      case .dictionary(let pairs):
        let place = append(.dictionary([], []))
        let keys = pairs.map { add(.string($0.0)) }
        objects[place] = .dictionary(keys, pairs.map { add($0.1) })
        return place
      }
    }

    private mutating func append(_ object: Flat) -> Int {
      objects.append(object)
      return objects.count - 1
    }
  }

  static func data(_ value: ArchiveValue) -> Data {
    var flattener = Flattener()
    let top = flattener.add(value)
    let objects = flattener.objects
    let referenceWidth = minimalBytes(UInt64(objects.count)).count
    var bytes = Array("bplist00".utf8)
    var offsets: [Int] = []
    for object in objects {
      offsets.append(bytes.count)
      switch object {
      case .leaf(let leaf):
        bytes += leaf
      case .array(let members):
        bytes += header(0xA0, members.count)
        for member in members { bytes += bigEndian(UInt64(member), referenceWidth) }
      case .dictionary(let keys, let values):
        bytes += header(0xD0, keys.count)
        for member in keys + values { bytes += bigEndian(UInt64(member), referenceWidth) }
      }
    }
    let table = bytes.count
    let offsetWidth = minimalBytes(UInt64(table)).count
    for offset in offsets { bytes += bigEndian(UInt64(offset), offsetWidth) }
    bytes += [0, 0, 0, 0, 0, 0, UInt8(offsetWidth), UInt8(referenceWidth)]
    bytes += bigEndian(UInt64(objects.count), 8)
    bytes += bigEndian(UInt64(top), 8)
    bytes += bigEndian(UInt64(table), 8)
    return Data(bytes)
  }

  private static func header(_ marker: UInt8, _ count: Int) -> [UInt8] {
    count < 15 ? [marker | UInt8(count)] : [marker | 0x0F] + integer(Int64(count))
  }

  private static func integer(_ value: Int64) -> [UInt8] {
    // One, two and four bytes are unsigned; a negative number takes eight.
    let bits = UInt64(bitPattern: value)
    switch bits {
    case 0...0xFF: return [0x10] + bigEndian(bits, 1)
    case 0...0xFFFF: return [0x11] + bigEndian(bits, 2)
    case 0...0xFFFF_FFFF: return [0x12] + bigEndian(bits, 4)
    default: return [0x13] + bigEndian(bits, 8)
    }
  }

  private static func string(_ text: String) -> [UInt8] {
    if text.utf8.allSatisfy({ $0 < 0x80 }) {
      return header(0x50, text.utf8.count) + Array(text.utf8)
    }
    let units = Array(text.utf16)
    return header(0x60, units.count) + units.flatMap { bigEndian(UInt64($0), 2) }
  }

  private static func minimalBytes(_ value: UInt64) -> [UInt8] {
    switch value {
    case 0...0xFF: bigEndian(value, 1)
    case 0...0xFFFF: bigEndian(value, 2)
    case 0...0xFFFF_FFFF: bigEndian(value, 4)
    default: bigEndian(value, 8)
    }
  }

  private static func bigEndian(_ value: UInt64, _ width: Int) -> [UInt8] {
    (0..<width).map { UInt8(truncatingIfNeeded: value >> (8 * UInt64(width - 1 - $0))) }
  }
}
