extension String {
  /// The text with control characters, line ends and bidirectional controls escaped, for a terminal
  /// or a line of a log.
  package var spelledOut: String {
    guard !unicodeScalars.allSatisfy({ $0.value >= 0x20 && $0.value < 0x7F }) else { return self }
    var shown = ""
    for scalar in unicodeScalars {
      switch scalar.properties.generalCategory {
      case .control, .lineSeparator, .paragraphSeparator:
        shown += "\\u{\(String(scalar.value, radix: 16, uppercase: true))}"
      case .format where scalar != "\u{200C}" && scalar != "\u{200D}":
        shown += "\\u{\(String(scalar.value, radix: 16, uppercase: true))}"
      default: shown.unicodeScalars.append(scalar)
      }
    }
    return shown
  }
  /// JSON with the same characters of its texts escaped, as JSON escapes them: the author of a text
  /// must not control the terminal on which it is printed, and programs read the same text.
  package var spelledOutJSON: String {
    guard !unicodeScalars.allSatisfy({ $0.value < 0x7F }) else { return self }
    var shown = ""
    for scalar in unicodeScalars {
      // Below this are the JSON's own line ends; those of its texts are escaped already.
      guard scalar.value >= 0x7F, String(scalar).spelledOut != String(scalar) else {
        shown.unicodeScalars.append(scalar)
        continue
      }
      for unit in String(scalar).utf16 {
        let digits = String(unit, radix: 16)
        shown += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
      }
    }
    return shown
  }
}
