/// A telephone number in a comparable form: its digits, and a plus sign before a country code.
struct PhoneNumber: Hashable, Sendable {
  let text: String

  /// Returns nil for a text that is no number; blanks, dashes, dots and brackets are ignored.
  init?(_ written: String) {
    var digits = ""
    for character in written {
      switch character {
      case "0"..."9": digits.append(character)
      case "+" where digits.isEmpty: digits = "+"
      case " ", "\u{A0}", "-", ".", "(", ")", "/": continue
      default: return nil
      }
    }
    if digits.hasPrefix("00") { digits = "+" + digits.dropFirst(2) }
    guard (3...20).contains(digits.filter(\.isNumber).count) else { return nil }
    text = digits
  }
}

extension StorageSnapshot {
  /// The account that has a number.
  func account(phoneNumber: String) throws -> String? {
    guard let number = PhoneNumber(phoneNumber) else { return nil }
    return try entry(DirectoryEntry.Key(.phoneNumber, number.text))?.owner
  }

  func phoneNumber(ofAccount id: String) throws -> String? {
    try entries(DirectoryRange(.phoneNumber, owner: id, limit: 1)).first?.key.name
  }
}

extension WriteBatch {
  /// Replaces an account's number; an empty text removes it.
  mutating func setPhoneNumber(
    _ written: String,
    ofAccount id: String,
    _ snapshot: any StorageSnapshot
  ) throws {
    let known = try snapshot.phoneNumber(ofAccount: id)
    var number: PhoneNumber?
    if !written.isEmpty {
      guard let read = PhoneNumber(written) else {
        throw AdministrationError(
          description: "\"\(written)\" is no telephone number."
        )
      }
      number = read
    }
    guard number?.text != known else { return }
    if let known { removedEntries.append(DirectoryEntry.Key(.phoneNumber, known)) }
    guard let number else { return }
    let key = DirectoryEntry.Key(.phoneNumber, number.text)
    guard try snapshot.entry(key) == nil else {
      throw AdministrationError(
        description: "The number \(number.text) is another account's."
      )
    }
    expectedEntries[key] = .some(nil)
    savedEntries.append(DirectoryEntry(key, owner: id))
  }
}
