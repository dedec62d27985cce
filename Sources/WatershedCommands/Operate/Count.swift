/// A number with its noun.
enum Count {
  /// "1 change", "2 changes".
  static func of(_ number: Int, _ noun: String) -> String {
    "\(number) \(noun)\(number == 1 ? "" : "s")"
  }
}
