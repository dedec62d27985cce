import Foundation

/// The objects of a binary property list, with references to each other by number.
///
/// Foundation's reader returns archive references as opaque objects on Linux, and it is not
/// designed for damaged input. This reader checks all bounds and follows no references itself, so
/// that cycles and deep nesting are harmless.
struct BinaryPropertyList {
  enum Node: Equatable {
    case null
    case boolean(Bool)
    case integer(Int64)
    /// A number beyond `Int64`.
    case unsigned(UInt64)
    case real(Double)
    case date(Double)
    case data(Data)
    case string(String)
    case reference(UInt64)
    case array([Int])
    case dictionary(keys: [Int], values: [Int])
  }

  struct DamageError: Error {
    let offset: Int
    let found: String
    let expected: String
  }

  let nodes: [Node]
  let top: Int

  init(_ data: Data) throws {
    var reader = try BinaryPropertyListReader(data)
    nodes = try reader.readAll()
    top = reader.top
  }
}

private struct BinaryPropertyListReader {
  private typealias DamageError = BinaryPropertyList.DamageError

  private let bytes: [UInt8]
  private let count: Int
  private let referenceWidth: Int
  private let tableStart: Int
  private let offsetWidth: Int
  /// Objects may share references, but each reference is written once: their number can't exceed
  /// the file's size.
  private var referencesLeft: Int
  /// Likewise the bytes of data and texts.
  private var contentLeft: Int
  let top: Int

  init(_ data: Data) throws {
    bytes = [UInt8](data)
    guard bytes.count >= 8 + 32, bytes.starts(with: Array("bplist0".utf8)) else {
      throw DamageError(
        offset: 0,
        found: "\(bytes.count) bytes that do not begin with \"bplist0\"",
        expected: "a binary property list"
      )
    }
    let trailer = bytes.count - 32
    offsetWidth = Int(bytes[trailer + 6])
    referenceWidth = Int(bytes[trailer + 7])
    let trailerBytes = bytes
    func number(_ start: Int) -> UInt64 {
      trailerBytes[start..<start + 8].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    }
    let objects = number(trailer + 8)
    let top = number(trailer + 16)
    let table = number(trailer + 24)
    guard (1...8).contains(offsetWidth), (1...8).contains(referenceWidth),
      objects > 0, top < objects, table >= 8, table < UInt64(trailer),
      objects <= (UInt64(trailer) - table) / UInt64(offsetWidth)
    else {
      throw DamageError(
        offset: trailer,
        found: "a trailer that does not fit the file",
        expected: "counts and offsets inside the file"
      )
    }
    count = Int(objects)
    self.top = Int(top)
    tableStart = Int(table)
    referencesLeft = bytes.count
    contentLeft = bytes.count
  }

  mutating func readAll() throws -> [BinaryPropertyList.Node] {
    var nodes: [BinaryPropertyList.Node] = []
    nodes.reserveCapacity(count)
    for index in 0..<count {
      let offset = try unsigned(at: tableStart + index * offsetWidth, width: offsetWidth)
      guard offset >= 8, offset < UInt64(tableStart) else {
        throw DamageError(
          offset: tableStart + index * offsetWidth,
          found: "the offset \(offset) of object \(index)",
          expected: "an offset before the table"
        )
      }
      nodes.append(try node(at: Int(offset)))
    }
    return nodes
  }

  private mutating func node(at offset: Int) throws -> BinaryPropertyList.Node {
    let marker = bytes[offset]
    let low = Int(marker & 0x0F)
    switch marker >> 4 {
    case 0x0:
      switch low {
      case 0x8: return .boolean(false)
      case 0x9: return .boolean(true)
      default: return .null
      }
    case 0x1:
      return try integer(at: offset + 1, width: 1 << low)
    case 0x2:
      return .real(try real(at: offset + 1, width: 1 << low))
    case 0x3:
      return .date(try real(at: offset + 1, width: 8))
    case 0x4:
      let (length, start) = try length(low, at: offset)
      return .data(Data(try content(start, length)))
    case 0x5:
      let (length, start) = try length(low, at: offset)
      return .string(String(decoding: try content(start, length), as: UTF8.self))
    case 0x6:
      let (length, start) = try length(low, at: offset)
      let units = try content(start, try product(length, 2, at: offset))
      let pairs = stride(from: units.startIndex, to: units.endIndex, by: 2).map {
        UInt16(units[$0]) << 8 | UInt16(units[$0 + 1])
      }
      return .string(String(decoding: pairs, as: UTF16.self))
    case 0x8:
      return .reference(try unsigned(at: offset + 1, width: low + 1))
    case 0xA, 0xC:
      let (length, start) = try length(low, at: offset)
      return .array(try references(start, length))
    case 0xD:
      let (length, start) = try length(low, at: offset)
      let keys = try references(start, length)
      return .dictionary(
        keys: keys,
        values: try references(start + length * referenceWidth, length)
      )
    default:
      throw DamageError(
        offset: offset,
        found: "the marker 0x\(String(marker, radix: 16))",
        expected: "the marker of a property list object"
      )
    }
  }

  /// The count in a marker, or in the integer object after a full one.
  private func length(_ low: Int, at offset: Int) throws -> (length: Int, start: Int) {
    guard low == 0xF else { return (low, offset + 1) }
    let width = 1 << Int(try byte(offset + 1) & 0x0F)
    guard try byte(offset + 1) >> 4 == 1, width <= 8 else {
      throw DamageError(offset: offset + 1, found: "no count", expected: "an integer")
    }
    let value = try unsigned(at: offset + 2, width: width)
    guard value <= UInt64(bytes.count) else {
      throw DamageError(
        offset: offset,
        found: "the count \(value)",
        expected: "a count that fits the file"
      )
    }
    return (Int(value), offset + 2 + width)
  }

  private mutating func references(_ start: Int, _ length: Int) throws -> [Int] {
    let size = try product(length, referenceWidth, at: start)
    _ = try slice(start, size)
    // Otherwise overlapping objects could expand a small file to a huge table.
    referencesLeft -= length
    guard referencesLeft >= 0 else {
      throw DamageError(
        offset: start,
        found: "more references than bytes",
        expected: "objects that do not overlap"
      )
    }
    return try (0..<length).map { index in
      let value = try unsigned(at: start + index * referenceWidth, width: referenceWidth)
      guard value < UInt64(count) else {
        throw DamageError(
          offset: start + index * referenceWidth,
          found: "a reference to object \(value)",
          expected: "an object number below \(count)"
        )
      }
      return Int(value)
    }
  }

  private func integer(at offset: Int, width: Int) throws -> BinaryPropertyList.Node {
    // Sixteen bytes contain unsigned numbers beyond Int64; the low half is the value.
    guard width == 16 else {
      return .integer(Int64(bitPattern: try unsigned(at: offset, width: width)))
    }
    let value = try unsigned(at: offset + 8, width: 8)
    let isBeyond = try unsigned(at: offset, width: 8) == 0 && value > UInt64(Int64.max)
    return isBeyond ? .unsigned(value) : .integer(Int64(bitPattern: value))
  }

  private func real(at offset: Int, width: Int) throws -> Double {
    switch width {
    case 4: return Double(Float(bitPattern: UInt32(try unsigned(at: offset, width: 4))))
    case 8: return Double(bitPattern: try unsigned(at: offset, width: 8))
    default:
      throw DamageError(offset: offset, found: "a real of \(width) bytes", expected: "4 or 8")
    }
  }

  private func unsigned(at offset: Int, width: Int) throws -> UInt64 {
    guard width <= 8 else {
      // Archive references of more than eight bytes do not occur.
      throw DamageError(offset: offset, found: "a number of \(width) bytes", expected: "up to 8")
    }
    return try slice(offset, width).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
  }

  private func byte(_ offset: Int) throws -> UInt8 {
    guard bytes.indices.contains(offset) else {
      throw DamageError(offset: offset, found: "the end of the file", expected: "more bytes")
    }
    return bytes[offset]
  }

  /// The bytes of data or a text: objects that overlap would expand a small file to a huge copy.
  private mutating func content(_ start: Int, _ length: Int) throws -> ArraySlice<UInt8> {
    let found = try slice(start, length)
    contentLeft -= length
    guard contentLeft >= 0 else {
      throw DamageError(
        offset: start,
        found: "more contents than bytes",
        expected: "objects that do not overlap"
      )
    }
    return found
  }

  private func slice(_ start: Int, _ length: Int) throws -> ArraySlice<UInt8> {
    guard start >= 0, length >= 0, start <= bytes.count, length <= bytes.count - start else {
      throw DamageError(
        offset: start,
        found: "an object of \(length) bytes",
        expected: "an object that ends inside the file"
      )
    }
    return bytes[start..<start + length]
  }

  private func product(_ left: Int, _ right: Int, at offset: Int) throws -> Int {
    let (result, overflow) = left.multipliedReportingOverflow(by: right)
    guard !overflow else {
      throw DamageError(offset: offset, found: "a count too large", expected: "a smaller one")
    }
    return result
  }
}
