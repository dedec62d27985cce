/// What names of people and devices may consist of.
///
/// They are shown on pages, in logs and on terminals. Control characters move a terminal's cursor and
/// colour; characters that turn the direction of writing make one name look like another.
enum PersonName {
  /// Why a user name cannot be taken; nil where it can.
  static func objection(to name: String) -> String? {
    guard name.unicodeScalars.allSatisfy({ !isHidden($0) }) else {
      return "A user name has no control characters and none that change the direction of writing."
    }
    guard name.first?.isWhitespace != true, name.last?.isWhitespace != true else {
      return "A user name does not begin or end with a space."
    }
    return nil
  }

  /// What a device calls itself, without characters that cannot be shown.
  static func device(_ text: String?, limit: Int) -> String {
    var scalars = String.UnicodeScalarView()
    for scalar in (text ?? "").unicodeScalars.prefix(4 * limit) where !isHidden(scalar) {
      scalars.append(scalar)
    }
    let name = String(String(scalars).prefix(limit))
    return name.allSatisfy(\.isWhitespace) ? "a device" : name
  }

  /// Whether a character moves a cursor, ends a line, or makes other characters look like something else.
  static func isHidden(_ scalar: Unicode.Scalar) -> Bool {
    // Joiners belong to Persian, to scripts of India and to emoji.
    if scalar == "\u{200C}" || scalar == "\u{200D}" { return false }
    // The tags of flags, and the marks that choose an emoji's form.
    if (0xE0020...0xE007F).contains(scalar.value) { return false }
    return switch scalar.properties.generalCategory {
    case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .unassigned: true
    default: false
    }
  }
}
