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
}
