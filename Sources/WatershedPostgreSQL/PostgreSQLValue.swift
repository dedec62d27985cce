import Foundation

/// A parameter of a statement, sent in PostgreSQL's binary format.
package enum PostgreSQLValue: Hashable, Sendable {
  case null
  /// A `bigint`.
  case integer(Int64)
  /// A `text`; NUL is the one character that PostgreSQL can't store.
  case text(String)
  /// A `bytea`.
  case bytes(Data)
  /// A `text[]`.
  case texts([String])
  /// A `bigint[]`.
  case integers([Int64])
}

/// The parameters of one execution in one buffer, with their offsets and lengths for libpq.
struct ParameterBuffer {
  private(set) var bytes: [UInt8] = []
  private(set) var offsets: [Int] = []
  private(set) var lengths: [Int32] = []
  private(set) var isNull: [Bool] = []
  /// Whether a text contains NUL, the one character that PostgreSQL can't store.
  private(set) var holdsNUL = false

  init(_ values: [PostgreSQLValue]) {
    bytes.reserveCapacity(values.count * 16)
    offsets.reserveCapacity(values.count)
    lengths.reserveCapacity(values.count)
    isNull.reserveCapacity(values.count)
    for value in values { append(value) }
    // Never empty, so that the buffer has a base address.
    bytes.append(0)
  }

  private mutating func append(_ value: PostgreSQLValue) {
    let start = bytes.count
    switch value {
    case .null: break
    case .integer(let value): append(value)
    case .text(let value):
      bytes.append(contentsOf: value.utf8)
      if bytes[start...].contains(0) { holdsNUL = true }
    case .bytes(let value): bytes.append(contentsOf: value)
    case .texts(let values):
      appendArrayHead(count: values.count, element: ElementType.text)
      for value in values {
        append(Int32(value.utf8.count))
        bytes.append(contentsOf: value.utf8)
      }
    case .integers(let values):
      appendArrayHead(count: values.count, element: ElementType.bigint)
      for value in values {
        append(Int32(8))
        append(value)
      }
    }
    offsets.append(start)
    lengths.append(Int32(bytes.count - start))
    isNull.append(value == .null)
  }

  /// The object identifiers that `pg_type` has for these types in every installation.
  private enum ElementType {
    static let bigint: Int32 = 20
    static let text: Int32 = 25
  }

  private mutating func appendArrayHead(count: Int, element: Int32) {
    append(Int32(count == 0 ? 0 : 1))
    append(Int32(0))
    append(element)
    guard count > 0 else { return }
    append(Int32(count))
    append(Int32(1))
  }

  private mutating func append(_ value: some FixedWidthInteger) {
    withUnsafeBytes(of: value.bigEndian) { bytes.append(contentsOf: $0) }
  }

  var size: Int { bytes.count }

  /// Calls the body with the pointers that `PQsendQueryPrepared` expects.
  func withPointers<Result>(
    _ body: (
      _ values: UnsafePointer<UnsafePointer<CChar>?>, _ lengths: UnsafePointer<Int32>,
      _ formats: UnsafePointer<Int32>
    ) -> Result
  ) -> Result? {
    bytes.withUnsafeBytes { buffer -> Result? in
      guard let base = buffer.baseAddress?.assumingMemoryBound(to: CChar.self) else { return nil }
      // One more than there are parameters, so that the array is never empty.
      var pointers = zip(offsets, isNull).map { $1 ? nil : base + $0 }
      pointers.append(nil)
      let formats = [Int32](repeating: 1, count: pointers.count)
      return pointers.withUnsafeBufferPointer { pointers in
        (lengths + [0]).withUnsafeBufferPointer { lengths in
          formats.withUnsafeBufferPointer { formats -> Result? in
            guard let values = pointers.baseAddress, let sizes = lengths.baseAddress,
              let kinds = formats.baseAddress
            else { return nil }
            return body(values, sizes, kinds)
          }
        }
      }
    }
  }
}
