import CloudKitServer
import Foundation
import Testing

@Suite("Text on a terminal")
struct TerminalTextTests {
  @Test("JSON has no control character and no bidirectional mark, and means the same")
  func json() throws {
    let text = "a\u{9B}31m\u{7F}\u{85}\u{202E}\u{2028}\u{E0001}é👩‍👧 می‌خواهم\n\u{1B}"
    let plain = String(decoding: try JSONEncoder().encode([text]), as: UTF8.self)
    #expect(plain.unicodeScalars.contains("\u{9B}"))
    let shown = plain.spelledOutJSON
    #expect(shown == shown.spelledOut)
    #expect(shown.contains("é👩‍👧 می‌خواهم"))
    #expect(try JSONDecoder().decode([String].self, from: Data(shown.utf8)) == [text])
    #expect("[\n  \"plain\"\n]".spelledOutJSON == "[\n  \"plain\"\n]")
  }
}
