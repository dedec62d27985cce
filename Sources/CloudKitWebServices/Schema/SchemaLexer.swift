/// Splits the schema language into words, quoted names and punctuation.
struct SchemaLexer {
  enum Kind: Hashable {
    case word(String)
    case quoted(String)
    case punctuation(Character)
    case end
    /// A character or a quotation that starts no token.
    case invalid(String)
  }

  struct Token {
    var kind: Kind
    var line: Int
    var column: Int

    var text: String {
      switch kind {
      case .word(let word): "\"\(word)\""
      case .quoted(let name): "the name \"\(name)\""
      case .punctuation(let character): "\"\(character)\""
      case .end: "the end of the file"
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

  /// Skips white space and comments; returns a token only where a comment never ends.
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
