import CloudKitWebServices

/// The valid names of zones, records, containers, types and fields.
package enum NameRules {
  /// Printable ASCII; names with a leading `_` are reserved for the service.
  static func isZoneName(_ name: String, _ limits: ServiceLimits) -> Bool {
    isPrintable(name, limits) && !name.hasPrefix("_")
  }

  static func isRecordName(_ name: String, _ limits: ServiceLimits) -> Bool {
    isPrintable(name, limits) && !name.hasPrefix("_")
  }

  /// Whether a name is valid for a record, or for a user's record, which has a leading `_`.
  static func isPublicRecordName(_ name: String, _ limits: ServiceLimits) -> Bool {
    isPrintable(name, limits)
  }

  /// Whether a text is a valid container name.
  ///
  /// Apple's have letters, digits, dots and hyphens; other printable characters are harmless. A
  /// name is used in paths, on pages and in logs.
  static func isContainerName(_ name: String, _ limits: ServiceLimits) -> Bool {
    !name.isEmpty && name.utf8.count <= limits.nameLength && !name.contains(ascii: "/")
      && name.unicodeScalars.allSatisfy { !PersonName.isHidden($0) }
  }

  /// Whether the name has the characters of a bundle identifier; CloudKit's containers have no
  /// others.
  package static func isIdentifier(_ name: String) -> Bool {
    name.wholeMatch(of: /[A-Za-z0-9._-]+/) != nil
  }

  package static let identifierRule =
    "A container has a name such as iCloud.org.example.app: letters, digits, hyphens, underscores and points."

  /// Whether a reference may name a record: of any database, also a user's.
  static func isTarget(_ name: String, _ zone: ZoneID?, _ limits: ServiceLimits) -> Bool {
    isPrintable(name, limits)
      && zone.map { zone in
        zone.zoneName.utf8.count <= limits.nameLength
          && (zone.ownerRecordName?.utf8.count ?? 0) <= limits.nameLength
      } ?? true
  }

  /// A letter, then letters, digits and underscores.
  static func isTypeOrFieldName(_ name: String, _ limits: ServiceLimits) -> Bool {
    guard let first = name.utf8.first, isLetter(first), name.utf8.count <= limits.nameLength else {
      return false
    }
    return name.utf8.allSatisfy { isLetter($0) || isDigit($0) || $0 == UInt8(ascii: "_") }
  }

  // The schema language has only ASCII letters and digits; other names could not be exported.
  private static func isLetter(_ byte: UInt8) -> Bool {
    let lower = byte | 0x20
    return lower >= UInt8(ascii: "a") && lower <= UInt8(ascii: "z")
  }

  private static func isDigit(_ byte: UInt8) -> Bool {
    byte >= UInt8(ascii: "0") && byte <= UInt8(ascii: "9")
  }

  private static func isPrintable(_ name: String, _ limits: ServiceLimits) -> Bool {
    !name.isEmpty && name.utf8.count <= limits.nameLength
      && name.utf8.allSatisfy { $0 >= 0x20 && $0 < 0x7F }
  }
}
