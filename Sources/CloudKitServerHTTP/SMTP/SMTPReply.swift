import Foundation

/// One reply of a mail server: a code, and its lines without the code (RFC 5321, 4.2).
struct SMTPReply: Hashable, Sendable {
  var code: Int
  var lines: [String]

  /// The lines for the log, escaped: text of another machine may contain terminal controls.
  var shown: String {
    let text = lines.joined(separator: " ").prefix(300)
    return "\(code) "
      + String(
        String.UnicodeScalarView(
          text.unicodeScalars.map { (0x20..<0x7F).contains($0.value) ? $0 : "?" }
        )
      )
  }
}

/// Parses replies from the bytes of a connection.
struct SMTPReplyReader {
  /// The server sent something that is no reply.
  struct Malformed: Error, Hashable {}

  /// The longest line in bytes: RFC 5321, 4.5.3.1.5 allows 512; some servers write more.
  private static let lineLimit = 4096
  /// The lines of one reply: more than the extensions of any known server.
  private static let countLimit = 128

  private var line: [UInt8] = []
  private var lines: [String] = []
  private var code: Int?

  /// Whether no bytes were received after the last reply.
  var isEmpty: Bool { line.isEmpty && lines.isEmpty }

  /// Reads a byte; returns the reply that it completes.
  mutating func take(_ byte: UInt8) throws(Malformed) -> SMTPReply? {
    guard byte == UInt8(ascii: "\n") else {
      guard line.count < Self.lineLimit else { throw Malformed() }
      line.append(byte)
      return nil
    }
    if line.last == UInt8(ascii: "\r") { line.removeLast() }
    defer { line = [] }
    let text = String(decoding: line, as: UTF8.self)
    guard let number = Int(text.prefix(3)), (200...599).contains(number), code ?? number == number
    else { throw Malformed() }
    let rest = text.dropFirst(3)
    guard let mark = rest.first else {
      // A code without text is a whole reply.
      return finish(number, with: "")
    }
    switch mark {
    case " ": return finish(number, with: String(rest.dropFirst()))
    case "-":
      guard lines.count < Self.countLimit else { throw Malformed() }
      code = number
      lines.append(String(rest.dropFirst()))
      return nil
    default: throw Malformed()
    }
  }

  private mutating func finish(_ number: Int, with last: String) -> SMTPReply {
    let reply = SMTPReply(code: number, lines: lines + [last])
    lines = []
    code = nil
    return reply
  }
}
