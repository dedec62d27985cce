/// The reader that rights in shares, change tokens and download URLs are for.
enum ReaderID: Hashable, Sendable {
  /// A caller without a user, who visits no share.
  case anonymous
  /// A user, by record name.
  case user(String)
  /// Every visitor of one public share: change tokens of one visit are valid in the next.
  case visitor(ofShare: String)

  /// The record name of a user; nil for a caller who is not signed in.
  var user: String? {
    if case .user(let name) = self { name } else { nil }
  }
}

/// The text in sealed tokens and URLs, which stay valid when the server is updated.
extension ReaderID {
  /// No user has such a name: user record names are an underscore and digits.
  private static let visitorPrefix = "_visitor-"

  var encoded: String {
    switch self {
    case .anonymous: ""
    case .user(let name): name
    case .visitor(let share): Self.visitorPrefix + share
    }
  }

  init(encoded: String) {
    if encoded.isEmpty {
      self = .anonymous
    } else if encoded.hasPrefix(Self.visitorPrefix) {
      self = .visitor(ofShare: String(encoded.dropFirst(Self.visitorPrefix.count)))
    } else {
      self = .user(encoded)
    }
  }
}

extension ReaderID: Codable {
  init(from decoder: any Decoder) throws {
    self.init(encoded: try decoder.singleValueContainer().decode(String.self))
  }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(encoded)
  }
}
