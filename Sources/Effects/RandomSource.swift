import Foundation
import Synchronization

/// A source of random bits.
public protocol RandomSource: Sendable {
  /// Sixty-four random bits.
  func next() -> UInt64
}

extension RandomSource {
  /// A random (version 4) UUID from this source's bits.
  public func uuid() -> UUID {
    let high = next()
    let low = next()
    func byte(_ word: UInt64, _ index: UInt64) -> UInt8 {
      UInt8(truncatingIfNeeded: word >> (56 - 8 * index))
    }
    return UUID(
      uuid: (
        byte(high, 0), byte(high, 1), byte(high, 2), byte(high, 3),
        byte(high, 4), byte(high, 5), (byte(high, 6) & 0x0F) | 0x40, byte(high, 7),
        (byte(low, 0) & 0x3F) | 0x80, byte(low, 1), byte(low, 2), byte(low, 3),
        byte(low, 4), byte(low, 5), byte(low, 6), byte(low, 7)
      )
    )
  }

  /// A number of random bytes.
  public func bytes(_ count: Int) -> Data {
    var data = Data(capacity: count + 8)
    while data.count < count {
      withUnsafeBytes(of: next()) { data.append(contentsOf: $0) }
    }
    return Data(data.prefix(count))
  }

  /// A random fraction in `0 ..< 1`.
  public func fraction() -> Double {
    Double(next() >> 11) * 0x1.0p-53
  }
}

/// The system's cryptographic random number generator.
public struct SystemRandomness: RandomSource {
  /// Creates the source.
  public init() {}

  /// Sixty-four random bits.
  public func next() -> UInt64 {
    var generator = SystemRandomNumberGenerator()
    return generator.next()
  }
}

/// A repeatable source: the splitmix64 sequence of a seed.
public final class SeededRandomness: RandomSource {
  private let state: Mutex<UInt64>

  /// Creates the sequence of a seed.
  public init(seed: UInt64) {
    state = Mutex(seed)
  }

  /// The next sixty-four bits of the sequence.
  public func next() -> UInt64 {
    state.withLock { state in
      state &+= 0x9E37_79B9_7F4A_7C15
      var word = state
      word = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
      word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
      return word ^ (word >> 31)
    }
  }
}
