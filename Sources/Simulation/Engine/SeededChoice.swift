import Effects

extension SeededRandomness {
  /// A number in `0 ..< bound`.
  func below(_ bound: Int) -> Int { bound < 2 ? 0 : Int(next() % UInt64(bound)) }

  /// Whether something of this probability happens.
  func happens(_ probability: Double) -> Bool { fraction() < probability }

  /// A number of the range.
  func between(_ range: ClosedRange<Double>) -> Double {
    range.lowerBound + fraction() * (range.upperBound - range.lowerBound)
  }

  /// Thirty-two random bits, for a choice that is made later.
  func pick() -> UInt32 { UInt32(truncatingIfNeeded: next()) }

  /// One of several, by their weights.
  func weighted<Element>(_ elements: [(Element, Int)]) -> Element? {
    let total = elements.reduce(0) { $0 + $1.1 }
    guard total > 0 else { return nil }
    var rest = below(total)
    for (element, weight) in elements {
      if rest < weight { return element }
      rest -= weight
    }
    return elements.last?.0
  }
}

/// Derives independent seeds from one.
enum SeedMixing {
  static func mix(_ seed: UInt64, _ text: String, _ number: Int = 0) -> UInt64 {
    var digest = TraceDigest()
    digest.add(seed)
    digest.add(text)
    digest.add(UInt64(truncatingIfNeeded: number))
    return digest.value
  }
}
