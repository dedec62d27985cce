import Foundation

/// The rule for new passwords: long enough, not too long to hash, and not one of the most common.
///
/// NIST SP 800-63B requires a minimum length and a list of known passwords, and no mix of
/// characters.
package struct PasswordRule: Hashable, Sendable {
  /// The minimum length in characters: NIST requires eight, OWASP recommends ten without a second factor.
  package var shortest = 10
  /// The maximum length in characters, beyond what a user types or a password manager makes.
  ///
  /// Each may have eight bytes in UTF-8 on average.
  package var longest = 128
  /// Refuses the passwords that are guessed first.
  package var refusesCommon = true

  package init() {}

  /// Accepts any password, for servers of tests.
  package static var any: PasswordRule {
    var rule = PasswordRule()
    rule.shortest = 1
    rule.refusesCommon = false
    return rule
  }

  /// Why a password is refused for an account; nil if it is accepted.
  package func objection(to password: String, userName: String) -> String? {
    let tooLong = "A password has at most \(longest) characters."
    // Counted in bytes first: the characters of a long text take long to count.
    guard password.utf8.count <= 8 * longest else { return tooLong }
    let password = Self.normalized(password)
    guard password.count >= shortest else {
      return "A password has at least \(shortest) characters."
    }
    guard password.count <= longest else { return tooLong }
    guard !refusesCommon || !(Self.isCommon(password) || Self.isName(password, userName)) else {
      return "This password is one of the most common ones; choose another."
    }
    return nil
  }

  /// One form (NFC) for equal input: keyboards and systems compose letters differently.
  package static func normalized(_ password: String) -> String {
    password.precomposedStringWithCanonicalMapping
  }

  private static func isName(_ password: String, _ userName: String) -> Bool {
    let (password, name) = (password.lowercased(), userName.lowercased())
    guard password.count >= 4 else { return false }
    return password == name || password == String(name.reversed())
      || password == String(name.prefix(before: "@"))
  }

  /// Whether it is a listed word, also with digits or marks after it, one character or a short
  /// group repeated, or a sequence of keys, case-insensitively.
  static func isCommon(_ password: String) -> Bool {
    let folded = password.lowercased()
    if common.contains(folded) || isRepetition(folded) || isRun(folded) { return true }
    // "Passwort2024!" is guessed with "passwort".
    let word = String(folded.prefix { $0.isLetter })
    let rest = folded.dropFirst(word.count)
    return rest.count <= 5 && rest.allSatisfy { !$0.isLetter } && words.contains(word)
  }

  private static func isRepetition(_ text: String) -> Bool {
    let characters = Array(text)
    for length in 1...3 where characters.count >= length * 3 {
      let group = characters[..<length]
      if characters.indices.allSatisfy({ characters[$0] == group[$0 % length] }) { return true }
    }
    return false
  }

  private static func isRun(_ text: String) -> Bool {
    guard text.count >= 4 else { return false }
    return runs.contains { $0.contains(text) || String($0.reversed()).contains(text) }
  }

  private static let runs = [
    "01234567890123456789", "abcdefghijklmnopqrstuvwxyz", "qwertyuiopasdfghjklzxcvbnm",
    "qwertzuiopasdfghjklyxcvbnm", "azertyuiopqsdfghjklmwxcvbn", "1q2w3e4r5t6y7u8i9o0p",
    "1qaz2wsx3edc4rfv5tgb6yhn7ujm", "zaq12wsxcde34rfvbgt5",
  ]

  /// The most common words in passwords of published breaches, with or without digits.
  private static let words: Set<String> = [
    "password", "passwort", "passwords", "motdepasse", "contrasena", "contraseña", "senha",
    "wachtwoord", "parola", "haslo", "salasana", "losenord", "lösenord", "adgangskode", "passord",
    "qwerty", "qwertyuiop", "qwertz", "qwertzuiop", "azerty", "azertyuiop", "asdfghjkl", "zxcvbnm",
    "iloveyou", "ichliebedich", "jetaime", "teamo", "letmein", "welcome", "willkommen", "bienvenue",
    "admin", "administrator", "administrateur", "root", "superuser", "test", "testtest", "testing",
    "user", "username", "login", "guest", "changeme", "secret", "default", "master", "computer",
    "internet", "monkey", "dragon", "sunshine", "princess", "football", "baseball", "basketball",
    "superman", "batman", "spiderman", "pokemon", "starwars", "trustno", "whatever", "michael",
    "jordan", "liverpool", "manchester", "barcelona", "realmadrid", "juventus", "chelsea",
    "arsenal", "schalke", "hamburg", "berlin", "london", "paris", "summer", "winter", "spring",
    "autumn", "sommer", "herbst", "january", "february", "september", "october", "november",
    "december", "monday", "friday", "freedom", "shadow", "hello", "hallo", "bonjour", "watershed",
    "cloudkit", "icloud", "apple", "google", "facebook", "samsung", "windows", "linkedin",
    "minecraft", "fortnite", "naruto", "blink", "jesus", "god", "family", "forever", "lovely",
    "flower", "butterfly", "chocolate", "charlie", "thomas", "daniel", "jessica", "ashley",
    "michelle", "nicole", "alexander", "elizabeth", "jennifer", "christian", "pass", "abc", "aa",
  ]

  /// Passwords of those lists with ten or more characters that no rule above matches.
  private static let common: Set<String> = [
    "passwordpassword", "password123456", "p@ssw0rd123", "p@ssword123", "passw0rd123",
    "pa$$word123",
    "adminadmin", "administrator1", "letmeinplease", "iloveyousomuch", "iloveyou123456",
    "correcthorsebatterystaple", "correct horse battery staple", "qwerty123456", "qwertyqwerty",
    "asdfasdfasdf", "asdfghjkl123", "zaq12wsxzaq12wsx", "1q2w3e4r5t6z", "q1w2e3r4t5y6",
    "q1w2e3r4t5", "qazwsxedcrfv", "qazwsxedc123", "abcd123456", "abc123456789", "a123456789",
    "1234qwerasdf", "1234567890q", "1234567890a", "987654321a", "0987654321", "1357924680",
    "2468101214", "3141592653", "1029384756", "5201314520", "woaini1314520", "woaini5201314",
    "unknown123", "changemenow", "defaultpassword", "secretpassword", "mypassword", "mypassword1",
    "newpassword", "newpassword1", "temppassword", "temporary1", "welcome2home", "whoami12345",
    "trustno1trustno1", "starwars123456", "footballfootball", "superman123456", "nothing123",
    "everything", "basketball1", "cheesecake", "strawberry", "manchester", "charlotte1",
    "bubblegum1", "sweetheart", "skateboard", "blueberry1", "snickerdoodle", "babygirl123",
    "lovelovelove", "jesuschrist", "jesusisgod", "godisgreat", "hello12345", "helloworld",
    "hello world", "testpassword", "testtesttest", "watershed1", "rockstar123", "thisisapassword",
  ]
}
