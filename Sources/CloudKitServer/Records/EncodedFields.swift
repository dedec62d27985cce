import CloudKitWebServices

/// Iterates over the stored fields of a record without decoding them.
///
/// They are a JSON object of objects without spaces, as `JSONWriter` and `JSONEncoder` write it.
struct EncodedFields {
  private let json: UnsafeRawBufferPointer
  private var index = 1

  init(_ json: UnsafeRawBufferPointer) { self.json = json }

  /// The next field and the bytes of its value; nil after the last one.
  mutating func next() throws -> (name: String, value: UnsafeRawBufferPointer)? {
    if try byte() == UInt8(ascii: "}") { return nil }
    if try byte() == UInt8(ascii: ",") { index += 1 }
    let start = index + 1
    try skipString()
    // Field names contain no characters that JSON escapes.
    let name = String(decoding: json[start..<index - 1], as: UTF8.self)
    index += 1
    let valueStart = index
    try skipObject()
    return (name, UnsafeRawBufferPointer(rebasing: json[valueStart..<index]))
  }

  /// Whether a value is a reference or a list of them, which is never encrypted.
  static func isReference(_ value: UnsafeRawBufferPointer) -> Bool {
    value.starts(with: #"{"type":"REFERENCE"#.utf8)
  }

  /// Whether a value that is not encrypted has dates finer than a millisecond.
  static func hasExactDates(_ value: UnsafeRawBufferPointer) -> Bool {
    value.starts(with: #"{"secondsSince2001":"#.utf8)
  }

  private func byte() throws -> UInt8 {
    guard index < json.count else { throw MalformedBody(reason: "kept fields end too early") }
    return json[index]
  }

  private mutating func skipString() throws {
    index += 1
    while try byte() != UInt8(ascii: "\"") {
      index += json[index] == UInt8(ascii: "\\") ? 2 : 1
    }
    index += 1
  }

  private mutating func skipObject() throws {
    var depth = 0
    repeat {
      switch try byte() {
      case UInt8(ascii: "\""):
        try skipString()
        continue
      case UInt8(ascii: "{"): depth += 1
      case UInt8(ascii: "}"): depth -= 1
      default: break
      }
      index += 1
    } while depth > 0
  }
}
