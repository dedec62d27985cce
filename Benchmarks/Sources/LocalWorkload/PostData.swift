/// The step of splitmix64.
public struct SplitMix {
  var state: UInt64

  /// Creates a stream.
  public init(state: UInt64) {
    self.state = state
  }

  /// The next 64 bits of the stream.
  public mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var word = state
    word = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
    word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
    return word ^ (word >> 31)
  }
}

/// The data of one post, equal for all engines.
public struct PostData: Sendable {
  /// The number, from 1.
  public let number: Int64
  /// 28 characters.
  public let title: String
  /// 208 characters.
  public let content: String
  /// Seconds.
  public let timestamp: Double
  /// Less than 1,000.
  public let score: Int64

  /// The name of the post's attachment.
  public var attachmentName: String { "att" + padded(number, 6) }

  /// The size of the post's attachment.
  public var attachmentSize: Int64 { number * 31 % 100_000 }

  /// The post's tags, by number from 0.
  public var tags: [Int64] {
    let count = LocalWorkload.tagCount
    let one = number * 7 % count
    let two = (number * 13 + 5) % count
    return [one, one == two ? (two + 1) % count : two]
  }

  /// The name of a tag.
  public static func tagName(_ number: Int64) -> String { "tag" + padded(number, 3) }

  /// Creates the data of a post.
  public init(_ number: Int64) {
    var random = SplitMix(state: UInt64(bitPattern: number) &* 0x9E37_79B9_7F4A_7C15)
    let words = (0..<16).map { _ in random.next() }
    self.number = number
    title = "Post \(padded(number, 6)) \(hexadecimal(words[0]))"
    timestamp = 1.6e9 + Double(words[1] % 100_000_000)
    score = Int64(words[2] % 1000)
    content = words[3...].map(hexadecimal).joined()
  }
}

func padded(_ number: Int64, _ width: Int) -> String {
  let digits = String(number)
  return String(repeating: "0", count: max(0, width - digits.count)) + digits
}

private func hexadecimal(_ word: UInt64) -> String {
  let digits = String(word, radix: 16)
  return String(repeating: "0", count: 16 - digits.count) + digits
}
