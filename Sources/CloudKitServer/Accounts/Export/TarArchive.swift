import Foundation

/// The parts of a tar archive, as POSIX.1-2001 (pax) has them: headers, padding and the end.
///
/// A member's size stands before its bytes, so nothing larger than a header is kept in memory.
enum TarArchive {
  private static let blockSize = 512

  /// The header of a member.
  static func header(path: String, size: Int64, modified: Date) -> Data {
    var header = Data()
    // The ustar header has room for 100 bytes of ASCII and for 8 GB.
    if path.utf8.count > 100 || size > 0o77_777_777_777 {
      let records = record("path", path) + record("size", String(size))
      let body = Data(records.utf8)
      header += block("pax", Int64(body.count), modified, type: "x")
      header += body + padding(Int64(body.count))
    }
    return header + block(path, size, modified, type: "0")
  }

  /// The padding after a member, to a multiple of 512 bytes.
  static func padding(_ size: Int64) -> Data {
    let rest = Int(size % Int64(blockSize))
    return Data(count: rest == 0 ? 0 : blockSize - rest)
  }

  /// A header that means nothing, between two members: a global comment.
  static func comment(_ text: String, modified: Date) -> Data {
    let body = Data(record("comment", text).utf8)
    let size = Int64(body.count)
    return block("pax", size, modified, type: "g") + body + padding(size)
  }

  static let end = Data(count: 2 * blockSize)

  /// `length key=value\n`, where the length counts itself.
  private static func record(_ key: String, _ value: String) -> String {
    let rest = " \(key)=\(value)\n"
    var length = rest.utf8.count
    while length != rest.utf8.count + String(length).count {
      length = rest.utf8.count + String(length).count
    }
    return "\(length)\(rest)"
  }

  private static func block(
    _ path: String,
    _ size: Int64,
    _ modified: Date,
    type: Character
  ) -> Data {
    var block = Data(count: blockSize)
    func put(_ text: String, at start: Int, _ length: Int) {
      for (index, byte) in text.utf8.prefix(length).enumerated() { block[start + index] = byte }
    }
    func octal(_ number: Int64, _ digits: Int) -> String {
      let text = String(number, radix: 8)
      return String(repeating: "0", count: max(0, digits - text.count)) + text
    }
    put(path, at: 0, 100)
    put(octal(0o600, 7), at: 100, 7)
    put(octal(0, 7), at: 108, 7)
    put(octal(0, 7), at: 116, 7)
    // A size that does not fit here is in the header before.
    put(octal(min(size, 0o77_777_777_777), 11), at: 124, 11)
    put(octal(max(0, Int64(modified.timeIntervalSince1970)), 11), at: 136, 11)
    put("        ", at: 148, 8)
    put(String(type), at: 156, 1)
    put("ustar", at: 257, 5)
    put("00", at: 263, 2)
    let sum = block.reduce(0) { $0 + Int64($1) }
    put(octal(sum, 6), at: 148, 6)
    block[154] = 0
    block[155] = UInt8(ascii: " ")
    return block
  }
}
