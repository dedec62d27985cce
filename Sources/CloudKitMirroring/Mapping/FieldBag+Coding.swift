import Foundation

/// Encoded fields that this version cannot decode.
package struct FieldBagError: Error {
  package var reason: String
}

extension FieldBag {
  /// The first byte of the encoding; other encodings have other numbers.
  private static let version: UInt8 = 1

  /// The compact encoding: keys in order, each value after a byte for its kind.
  package var encoded: Data {
    var writer = ByteWriter()
    writer.byte(Self.version)
    writer.integer(Int64(values.count))
    for key in values.keys.sorted() {
      guard let value = values[key] else { continue }
      writer.text(key)
      switch value {
      case .string(let text):
        writer.byte(1)
        writer.text(text)
      case .integer(let number):
        writer.byte(2)
        writer.integer(number)
      case .double(let number):
        writer.byte(3)
        writer.integer(Int64(bitPattern: number.bitPattern))
      case .date(let date):
        writer.byte(4)
        writer.integer(date.milliseconds)
      case .data(let data):
        writer.byte(5)
        writer.data(data)
      case .asset(let asset):
        writer.byte(6)
        writer.integer(asset.fingerprint.size)
        writer.data(asset.fingerprint.digest)
        writer.text(asset.file)
      case .fingerprint(let print):
        writer.byte(7)
        writer.integer(print.size)
        writer.data(print.digest)
      }
    }
    writeExactDates(to: &writer)
    return writer.bytes
  }

  /// Decodes the compact encoding.
  package init(encoded: Data) throws {
    var reader = ByteReader(encoded)
    guard try reader.byte() == Self.version else {
      throw FieldBagError(reason: "The metadata has fields in the encoding of another version.")
    }
    let count = try reader.count()
    var values: [String: MirrorValue] = [:]
    for _ in 0..<count {
      let key = try reader.text()
      switch try reader.byte() {
      case 1: values[key] = .string(try reader.text())
      case 2: values[key] = .integer(try reader.integer())
      case 3:
        let bits = UInt64(bitPattern: try reader.integer())
        values[key] = .double(Double(bitPattern: bits))
      case 4: values[key] = .date(MirrorDate(milliseconds: try reader.integer()))
      case 5: values[key] = .data(try reader.data())
      case 6:
        let print = MirrorFingerprint(size: try reader.integer(), digest: try reader.data())
        values[key] = .asset(MirrorAsset(fingerprint: print, file: try reader.text()))
      case 7:
        let size = try reader.integer()
        values[key] = .fingerprint(MirrorFingerprint(size: size, digest: try reader.data()))
      case let kind: throw FieldBagError(reason: "The metadata has a value of kind \(kind).")
      }
    }
    if !reader.isAtEnd { try Self.readExactDates(&reader, into: &values) }
    self.values = values
  }

  /// Dates finer than a millisecond follow the values, where earlier versions do not look.
  private func writeExactDates(to writer: inout ByteWriter) {
    let dates = values.compactMapValues { value in
      if case .date(let date) = value, !date.isWholeMilliseconds { date } else { nil }
    }
    guard !dates.isEmpty else { return }
    writer.integer(Int64(dates.count))
    for (key, date) in dates.sorted(by: { $0.key < $1.key }) {
      writer.text(key)
      writer.integer(Int64(bitPattern: date.secondsSince2001.bitPattern))
    }
  }

  private static func readExactDates(
    _ reader: inout ByteReader,
    into values: inout [String: MirrorValue]
  ) throws {
    for _ in 0..<(try reader.count()) {
      let key = try reader.text()
      let bits = UInt64(bitPattern: try reader.integer())
      let exact = MirrorValue.date(MirrorDate(secondsSince2001: Double(bitPattern: bits)))
      // An earlier version may have changed the value alone.
      if values[key] == exact { values[key] = exact }
    }
  }
}

/// Writes numbers, texts and bytes in sequence.
struct ByteWriter {
  private(set) var bytes = Data()

  mutating func byte(_ value: UInt8) { bytes.append(value) }

  mutating func integer(_ value: Int64) {
    withUnsafeBytes(of: value.littleEndian) { bytes.append(contentsOf: $0) }
  }

  mutating func text(_ value: String) {
    integer(Int64(value.utf8.count))
    bytes.append(contentsOf: value.utf8)
  }

  mutating func data(_ value: Data) {
    integer(Int64(value.count))
    bytes.append(value)
  }
}

/// Reads the output of a ``ByteWriter``.
struct ByteReader {
  private let bytes: [UInt8]
  private var position = 0

  init(_ data: Data) { bytes = [UInt8](data) }

  var isAtEnd: Bool { position == bytes.count }

  mutating func byte() throws -> UInt8 {
    guard position < bytes.count else { throw FieldBagError(reason: "The bytes end too early.") }
    defer { position += 1 }
    return bytes[position]
  }

  mutating func integer() throws -> Int64 {
    var bits: UInt64 = 0
    for byte in try take(8).reversed() { bits = bits << 8 | UInt64(byte) }
    return Int64(bitPattern: bits)
  }

  mutating func text() throws -> String { String(decoding: try take(try count()), as: UTF8.self) }

  mutating func data() throws -> Data { Data(try take(try count())) }

  mutating func count() throws -> Int {
    guard let count = Int(exactly: try integer()), count >= 0 else {
      throw FieldBagError(reason: "A length is negative.")
    }
    return count
  }

  private mutating func take(_ count: Int) throws -> ArraySlice<UInt8> {
    guard count <= bytes.count - position else {
      throw FieldBagError(reason: "The bytes end too early.")
    }
    defer { position += count }
    return bytes[position..<position + count]
  }
}
