import Foundation

/// Names that differ only in the case of letters, or in how letters are composed, are one; by our own
/// rule, in every engine.
extension StoredAccount {
  /// What the row of an account is found by.
  ///
  /// New names are in one form (NFC). One of an earlier version keeps the form that it was stored in:
  /// another account may have the name in the other form.
  var foldedName: String { Self.storedFold(userName) }

  static func storedFold(_ userName: String) -> String { userName.lowercased() }

  /// For comparisons: one text for what is one name.
  static func folded(_ userName: String) -> String {
    storedFold(normalized(userName)).precomposedStringWithCanonicalMapping
  }

  /// One form for what is typed alike: keyboards and systems compose letters differently.
  static func normalized(_ userName: String) -> String {
    userName.precomposedStringWithCanonicalMapping
  }

  /// The folds under which a name may be stored, the likeliest first: as it was typed, which finds
  /// whatever was found before, in the form of new names, and in the other form.
  static func storedFolds(of userName: String) -> [String] {
    let plain = storedFold(userName)
    guard !userName.utf8.allSatisfy({ $0 < 0x80 }) else { return [plain] }
    var folds = [plain]
    for form in [
      userName.precomposedStringWithCanonicalMapping, userName.decomposedStringWithCanonicalMapping,
    ] {
      let fold = storedFold(form)
      // As bytes: Swift takes both forms of a text for the same text.
      if !folds.contains(where: { $0.utf8.elementsEqual(fold.utf8) }) { folds.append(fold) }
    }
    return folds
  }
}
