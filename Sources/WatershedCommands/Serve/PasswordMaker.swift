/// Makes passwords that can be read aloud and typed.
enum PasswordMaker {
  /// Thirty-one signs, none of which is taken for another; twenty of them are 99 bits.
  private static let signs = Array("abcdefghjkmnpqrstuvwxyz23456789")

  static func password() -> String {
    let groups = (0..<4).map { _ in
      String((0..<5).compactMap { _ in signs.randomElement() })
    }
    return groups.joined(separator: "-")
  }
}
