import CloudKitServer
import Foundation

/// A mail in its wire format: headers and text (RFC 5322, RFC 2045), in ASCII with lines of at most
/// 76 bytes.
struct MailDocument {
  private let headers: [(name: String, value: String)]
  private let text: String

  init(_ message: MailMessage, from: String, name: String) {
    let domain = from.split(ascii: "@").last.map(String.init) ?? "localhost"
    headers = [
      ("Date", Self.date(message.date)),
      ("From", "\(Self.phrase(name, after: 6)) <\(from)>"),
      ("To", "<\(message.to)>"),
      ("Message-ID", "<\(message.id)@\(domain)>"),
      ("Subject", Self.unstructured(message.subject, after: 9)),
      // Automatic responders do not reply to such mails (RFC 3834).
      ("Auto-Submitted", "auto-generated"),
      ("MIME-Version", "1.0"),
      ("Content-Type", "text/plain; charset=utf-8"),
      ("Content-Transfer-Encoding", "quoted-printable"),
    ]
    text = message.text
  }

  var bytes: Data {
    var lines = headers.map { "\($0.name): \($0.value)" }
    lines.append("")
    lines += text.split(ascii: "\n", omittingEmptySubsequences: false)
      .map { Self.quotedPrintable(String($0)) }
    return Data((lines.joined(separator: "\r\n") + "\r\n").utf8)
  }

  /// A document with dot-stuffing: no line of it is the one that ends the data (RFC 5321, 4.5.2).
  static func stuffed(_ document: Data) -> Data {
    var stuffed = Data()
    stuffed.reserveCapacity(document.count + 64)
    var isLineStart = true
    for byte in document {
      if isLineStart, byte == UInt8(ascii: ".") { stuffed.append(byte) }
      stuffed.append(byte)
      isLineStart = byte == UInt8(ascii: "\n")
    }
    stuffed.append(contentsOf: ".\r\n".utf8)
    return stuffed
  }

  // MARK: Headers

  /// A display name before an address: a quoted string, or encoded words.
  private static func phrase(_ text: String, after used: Int) -> String {
    let text = oneLine(text)
    guard isPlain(text), text.count + used < lineLength - 2 else { return encodedWords(text) }
    let quoted = text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"")
    return "\"\(quoted)\""
  }

  private static func unstructured(_ text: String, after used: Int) -> String {
    let text = oneLine(text)
    return isPlain(text) && text.count + used <= lineLength ? text : encodedWords(text)
  }

  private static let lineLength = 76

  /// Printable ASCII that is not parsed as an encoded word.
  private static func isPlain(_ text: String) -> Bool {
    text.utf8.allSatisfy { (0x20..<0x7F).contains($0) } && !text.contains("=?")
  }

  /// A value without line breaks, which cannot begin another header.
  private static func oneLine(_ text: String) -> String {
    var scalars = String.UnicodeScalarView()
    for scalar in text.unicodeScalars {
      switch scalar.properties.generalCategory {
      case .control, .lineSeparator, .paragraphSeparator: scalars.append(" ")
      default: scalars.append(scalar)
      }
    }
    return String(scalars)
  }

  /// RFC 2047: words of whole characters, each with its own delimiters and on its own line.
  private static func encodedWords(_ text: String) -> String {
    // 36 bytes are 48 characters in base64; with the delimiters and the longest header name 69.
    let room = 36
    var words: [String] = []
    var word = Data()
    for scalar in text.unicodeScalars {
      let bytes = Data(String(scalar).utf8)
      if word.count + bytes.count > room {
        words.append("=?UTF-8?B?\(word.base64EncodedString())?=")
        word = Data()
      }
      word += bytes
    }
    words.append("=?UTF-8?B?\(word.base64EncodedString())?=")
    return words.joined(separator: "\r\n ")
  }

  /// RFC 5322, 3.3, independent of the machine's locale.
  private static func date(_ date: Date) -> String {
    let formatter = DateFormatter()
    formatter.locale = Locale(identifier: "en_US_POSIX")
    formatter.timeZone = TimeZone(secondsFromGMT: 0)
    formatter.dateFormat = "EEE, dd MMM yyyy HH:mm:ss +0000"
    return formatter.string(from: date)
  }

  // MARK: Text

  /// One line as quoted-printable, with soft breaks.
  private static func quotedPrintable(_ line: String) -> String {
    var result = ""
    var width = 0
    let bytes = Array(line.utf8)
    for (index, byte) in bytes.enumerated() {
      let isLast = index == bytes.count - 1
      let isBlank = byte == 0x20 || byte == 0x09
      let isLiteral = ((0x21..<0x7F).contains(byte) && byte != 0x3D) || (isBlank && !isLast)
      let piece = isLiteral ? String(UnicodeScalar(byte)) : hexadecimal(byte)
      // Leave room for the soft line break.
      if width + piece.count > lineLength - 1 {
        result += "=\r\n"
        width = 0
      }
      result += piece
      width += piece.count
    }
    return result
  }

  private static func hexadecimal(_ byte: UInt8) -> String {
    "=" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
  }
}
