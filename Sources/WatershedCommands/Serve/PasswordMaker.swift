/// Generates passwords that are easy to read aloud and to type.
enum PasswordMaker {
  /// 31 characters, without similar ones; twenty of them are 99 bits.
  private static let signs = Array("abcdefghjkmnpqrstuvwxyz23456789")

  static func password() -> String {
    let groups = (0..<4).map { _ in
      String((0..<5).compactMap { _ in signs.randomElement() })
    }
    return groups.joined(separator: "-")
  }
}
