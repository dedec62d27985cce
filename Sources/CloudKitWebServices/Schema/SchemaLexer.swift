/// Splits the schema language into words, quoted names and punctuation.
struct SchemaLexer {
  enum Kind: Hashable {
    case word(String)
    case quoted(String)
    case punctuation(Character)
    case end
    /// Characters that start no token, or an unterminated comment or quotation.
    case invalid(String)
  }

  struct Token {
    var kind: Kind
    var line: Int
    var column: Int

    /// The token in the notation of a generated parser: its kind, then its text.
    var text: String {
      switch kind {
      case .word(let word):
        SchemaWord.isKeyword(word)
          ? "\" \"\(word.uppercased())\" \"\(word) \"\"" : "\" <IDENTIFIER> \"\(word) \"\""
      case .quoted(let name): "\" <QUOTED_IDENTIFIER> \"\\\"\(name)\\\" \"\""
      case .punctuation(let character): "\" \"\(character)\" \"\(character) \"\""
      case .end: "\"<EOF>\""
      case .invalid(let text): "\"\(text)\""
      }
    }
  }

  private let characters: [Character]
  private var position = 0
  private var line = 1
  private var column = 1

  init(_ text: String) {
    characters = Array(text)
    // The byte order mark that some editors write.
    if characters.first == "\u{FEFF}" { position = 1 }
  }

  private var current: Character? {
    position < characters.count ? characters[position] : nil
  }

  private func follows(_ text: String) -> Bool {
    characters[position...].starts(with: text)
  }

  private mutating func advance() {
    if characters[position].isNewline {
      line += 1
      column = 1
    } else {
      column += 1
    }
    position += 1
  }

  mutating func next() -> Token {
    if let unfinished = skipBlanks() { return unfinished }
    let (line, column) = (line, column)
    func token(_ kind: Kind) -> Token { Token(kind: kind, line: line, column: column) }
    guard let first = current else { return token(.end) }
    if first.isASCII, first.isLetter {
      var word = ""
      while let character = current,
        character.isASCII, character.isLetter || character.isNumber || character == "_"
      {
        word.append(character)
        advance()
      }
      return token(.word(word))
    }
    if first == "\"" {
      advance()
      var name = ""
      while let character = current, character != "\"", !character.isNewline {
        name.append(character)
        advance()
      }
      guard current == "\"" else { return token(.invalid("\"" + name)) }
      advance()
      return token(.quoted(name))
    }
    advance()
    return token("(),;<>".contains(first) ? .punctuation(first) : .invalid(String(first)))
  }

  /// Skips white space and comments; returns a token only for an unterminated comment.
  private mutating func skipBlanks() -> Token? {
    while let character = current {
      if character.isWhitespace {
        advance()
      } else if follows("//") || follows("--") {
        while current?.isNewline == false { advance() }
      } else if follows("/*") {
        let start = Token(kind: .invalid("/*"), line: line, column: column)
        advance()
        advance()
        while !follows("*/") {
          guard current != nil else { return start }
          advance()
        }
        advance()
        advance()
      } else {
        return nil
      }
    }
    return nil
  }
}

/// The keywords of the language; all of them may be names where a name is expected.
enum SchemaWord {
  static func isKeyword(_ word: String) -> Bool { keywords.contains(word.uppercased()) }

  /// Keywords that are ambiguous where a name is expected, so that they need quotes.
  static let reserved: Set<String> = ["GRANT", "PREFERRED", "QUERYABLE", "SORTABLE", "SEARCHABLE"]

  private static let keywords: Set<String> = reserved.union([
    "DEFINE", "SCHEMA", "CREATE", "ROLE", "RECORD", "TYPE", "READ", "WRITE", "TO", "LIST", "AS",
    "ASSET", "BYTES", "DOUBLE", "ENCRYPTED", "INT64", "LOCATION", "NUMBER", "REFERENCE", "STRING",
    "TIMESTAMP",
  ])
}
