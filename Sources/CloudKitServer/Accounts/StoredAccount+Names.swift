import Foundation

/// Names that differ only in the case of letters, or in how letters are composed, are equal; by our
/// own rule, in every engine.
extension StoredAccount {
  /// The key by which the row of an account is found.
  ///
  /// New names are in one form (NFC). A name of an earlier version keeps its stored form: another
  /// account may have the name in the other form.
  var foldedName: String { Self.storedFold(userName) }

  static func storedFold(_ userName: String) -> String { userName.lowercased() }

  /// The form for comparisons: equal for equal names.
  static func folded(_ userName: String) -> String {
    storedFold(normalized(userName)).precomposedStringWithCanonicalMapping
  }

  /// One form for equal input: keyboards and systems compose letters differently.
  static func normalized(_ userName: String) -> String {
    userName.precomposedStringWithCanonicalMapping
  }

  /// The folds under which a name may be stored, the most likely first: as typed, which finds all
  /// names that were found before; in the form of new names; and in the other form.
  static func storedFolds(of userName: String) -> [String] {
    let plain = storedFold(userName)
    guard !userName.utf8.allSatisfy({ $0 < 0x80 }) else { return [plain] }
    var folds = [plain]
    for form in [
      userName.precomposedStringWithCanonicalMapping, userName.decomposedStringWithCanonicalMapping,
    ] {
      let fold = storedFold(form)
      // Compared as bytes: Swift treats both forms of a text as equal.
      if !folds.contains(where: { $0.utf8.elementsEqual(fold.utf8) }) { folds.append(fold) }
    }
    return folds
  }
}
