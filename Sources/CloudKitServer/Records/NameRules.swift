import CloudKitWebServices

/// What may be a name.
enum NameRules {
  /// Printable ASCII; a leading `_` belongs to the service.
  static func isZoneName(_ name: String, _ limits: ServiceLimits) -> Bool {
    isPrintable(name, limits) && !name.hasPrefix("_")
  }

  static func isRecordName(_ name: String, _ limits: ServiceLimits) -> Bool {
    isPrintable(name, limits) && !name.hasPrefix("_")
  }

  /// The same, or the name of a user's record, which begins with `_`.
  static func isPublicRecordName(_ name: String, _ limits: ServiceLimits) -> Bool {
    isPrintable(name, limits)
  }

  /// What a container may be called.
  ///
  /// Apple's have letters, digits, dots and hyphens; other characters that are shown as they are do no
  /// harm. A name stands in paths, on pages and in logs.
  static func isContainerName(_ name: String, _ limits: ServiceLimits) -> Bool {
    !name.isEmpty && name.utf8.count <= limits.nameLength && !name.contains("/")
      && name.unicodeScalars.allSatisfy { !PersonName.isHidden($0) }
  }

  /// What a reference may name: a record of any database, a user's too.
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

  // The schema language knows the letters and digits of ASCII only; what it cannot spell could
  // not be exported.
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
