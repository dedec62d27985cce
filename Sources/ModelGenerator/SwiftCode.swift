/// A buffer for generated Swift source.
struct SwiftCode {
  private(set) var text = ""
  private var depth = 0

  mutating func line(_ line: String = "") {
    text += line.isEmpty ? "\n" : String(repeating: "  ", count: depth) + line + "\n"
  }

  /// Writes a line with an opening brace, the content, and the closing brace.
  mutating func block(_ opening: String, _ content: (inout SwiftCode) -> Void) {
    line(opening + " {")
    depth += 1
    content(&self)
    depth -= 1
    line("}")
  }

  /// Writes content inside an `#if` with the conditions.
  mutating func conditional(_ conditions: [String], _ content: (inout SwiftCode) -> Void) {
    guard !conditions.isEmpty else { return content(&self) }
    line("#if " + conditions.map { "(\($0))" }.joined(separator: " && "))
    content(&self)
    line("#endif")
  }

  /// A string literal.
  static func literal(_ text: String) -> String {
    let escaped = text.flatMap { character -> [Character] in
      switch character {
      case "\"", "\\": ["\\", character]
      case "\n": ["\\", "n"]
      default: [character]
      }
    }
    return "\"" + String(escaped) + "\""
  }

  /// The name, with backticks if it is a keyword.
  static func name(_ name: String) -> String {
    keywords.contains(name) ? "`\(name)`" : name
  }

  private static let keywords: Set<String> = [
    "Any", "Protocol", "Self", "Type", "as", "associatedtype", "break", "case", "catch", "class",
    "continue", "default", "defer", "deinit", "do", "else", "enum", "extension", "fallthrough",
    "false", "fileprivate", "for", "func", "guard", "if", "import", "in", "init", "inout",
    "internal", "is", "let", "nil", "operator", "precedencegroup", "private", "protocol", "public",
    "repeat", "rethrows", "return", "self", "static", "struct", "subscript", "super", "switch",
    "throw", "throws", "true", "try", "typealias", "var", "where", "while",
  ]
}
