/// What may be a name.
enum NameRules {
  /// Printable ASCII; a leading `_` belongs to the service.
  static func isZoneName(_ name: String, _ limits: ServiceLimits) -> Bool {
    isPrintable(name, limits) && !name.hasPrefix("_")
  }

  static func isRecordName(_ name: String, _ limits: ServiceLimits) -> Bool {
    isPrintable(name, limits) && !name.hasPrefix("_")
  }

  /// A letter, then letters, digits and underscores.
  static func isTypeOrFieldName(_ name: String, _ limits: ServiceLimits) -> Bool {
    guard let first = name.first, first.isLetter, name.count <= limits.nameLength else {
      return false
    }
    return name.allSatisfy { $0.isLetter || $0.isNumber || $0 == "_" }
  }

  private static func isPrintable(_ name: String, _ limits: ServiceLimits) -> Bool {
    !name.isEmpty && name.utf8.count <= limits.nameLength
      && name.utf8.allSatisfy { $0 >= 0x20 && $0 < 0x7F }
  }
}
