/// The valid names of users and devices.
///
/// They are shown on pages, in logs and on terminals. Control characters move a terminal's cursor
/// and change its colors; bidirectional controls make one name look like another.
enum PersonName {
  /// Why a user name is refused; nil if it is accepted.
  static func objection(to name: String) -> String? {
    guard name.unicodeScalars.allSatisfy({ !isHidden($0) }) else {
      return "A user name has no control characters and none that change the direction of writing."
    }
    guard name.first?.isWhitespace != true, name.last?.isWhitespace != true else {
      return "A user name does not begin or end with a space."
    }
    return nil
  }

  /// A device's own name, without hidden characters.
  static func device(_ text: String?, limit: Int) -> String {
    var scalars = String.UnicodeScalarView()
    for scalar in (text ?? "").unicodeScalars.prefix(4 * limit) where !isHidden(scalar) {
      scalars.append(scalar)
    }
    let name = String(String(scalars).prefix(limit))
    return name.allSatisfy(\.isWhitespace) ? "a device" : name
  }

  /// Whether a character moves a cursor, ends a line, or changes how other characters look.
  static func isHidden(_ scalar: Unicode.Scalar) -> Bool {
    // Joiners are used in Persian, in Indic scripts and in emoji.
    if scalar == "\u{200C}" || scalar == "\u{200D}" { return false }
    // The tags of flags, and the variation selectors of emoji.
    if (0xE0020...0xE007F).contains(scalar.value) { return false }
    return switch scalar.properties.generalCategory {
    case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .unassigned: true
    default: false
    }
  }
}
