/// The syntax of e-mail addresses, and their comparison: case-insensitive for ASCII letters alone.
///
/// Unicode's case folding treats some distinct letters as equal, such as K and the Kelvin sign;
/// addresses that differ in them belong to different users.
package enum EmailAddress {
  static func folded(_ address: String) -> String {
    let capitals = UInt8(ascii: "A")...UInt8(ascii: "Z")
    return String(
      decoding: address.utf8.map { capitals.contains($0) ? $0 | 0x20 : $0 },
      as: UTF8.self
    )
  }

  static func areSame(_ address: String, _ other: String) -> Bool {
    folded(address).utf8.elementsEqual(folded(other).utf8)
  }

  /// Why a text is no valid address; nil if it is one.
  ///
  /// A dot-atom before the sign and a host name after it (RFC 5321, 4.1.2), including letters
  /// beyond ASCII (RFC 6531). Quoted local parts and addresses in brackets are refused: they are
  /// not in use, and the characters that they allow end a command or a header.
  package static func objection(to text: String) -> String? {
    let refusal = "This is not an e-mail address."
    guard text.utf8.count <= 254 else { return "An e-mail address has at most 254 bytes." }
    let parts = text.split(ascii: "@", omittingEmptySubsequences: false)
    guard parts.count == 2, (1...64).contains(parts[0].utf8.count), !parts[1].isEmpty,
      PersonName.objection(to: text) == nil
    else { return refusal }
    let atoms = parts[0].split(ascii: ".", omittingEmptySubsequences: false)
    guard atoms.allSatisfy({ !$0.isEmpty && $0.unicodeScalars.allSatisfy(isOfAtom) }) else {
      return refusal
    }
    let labels = parts[1].split(ascii: ".", omittingEmptySubsequences: false)
    guard labels.allSatisfy(isLabel) else { return refusal }
    return nil
  }

  private static func isOfAtom(_ scalar: Unicode.Scalar) -> Bool {
    guard scalar.isASCII else { return isLetter(scalar) }
    return isAlphanumeric(scalar) || "!#$%&'*+-/=?^_`{|}~".unicodeScalars.contains(scalar)
  }

  private static func isLabel(_ label: Substring) -> Bool {
    (1...63).contains(label.utf8.count) && label.first != "-" && label.last != "-"
      && label.unicodeScalars.allSatisfy {
        $0.isASCII ? isAlphanumeric($0) || $0 == "-" : isLetter($0)
      }
  }

  private static func isAlphanumeric(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar {
    case "a"..."z", "A"..."Z", "0"..."9": true
    default: false
    }
  }

  /// Letters, digits and marks beyond ASCII; no separators or invisible characters.
  private static func isLetter(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.properties.generalCategory {
    case .uppercaseLetter, .lowercaseLetter, .titlecaseLetter, .modifierLetter, .otherLetter,
      .nonspacingMark, .spacingMark, .decimalNumber, .letterNumber, .otherNumber:
      true
    default: false
    }
  }
}
