import Effects
import Foundation
import Testing

@testable import CloudKitServer

@Suite("Index keys")
struct IndexKeyTests {
  @Test("Bytes are in the order of the values: missing, numbers, text, bytes")
  func order() {
    let ordered: [IndexValue] = [
      .missing, .real(-.greatestFiniteMagnitude), .integer(.min), .integer(.min + 1),
      .integer(-1025), .real(-1.5), .integer(-1), .real(-.leastNonzeroMagnitude), .integer(0),
      .real(.leastNonzeroMagnitude),
      .real(0.5), .integer(1), .real(1.5), .integer(1 << 53), .integer((1 << 53) + 1),
      .real(9_007_199_254_740_994), .integer(.max - 513), .integer(.max - 512),
      .integer(.max - 511), .integer(.max - 1), .integer(.max), .real(9_223_372_036_854_775_808),
      .real(.greatestFiniteMagnitude), .real(.infinity), .text(""), .text("\u{0}"), .text("A"),
      .text("a"), .text("a\u{0}"), .text("aa"), .text("é"), .text("日本"), .text("\u{10FFFF}"),
      .bytes(Data()), .bytes(Data([0])), .bytes(Data([0, 0])), .bytes(Data([255])),
    ]
    for (left, right) in zip(ordered, ordered.dropFirst()) {
      #expect(IndexKey(left) < IndexKey(right), "\(left), \(right)")
      #expect(!(IndexKey(right) < IndexKey(left)))
    }
    #expect(IndexKey(.integer(3)) == IndexKey(.real(3)))
    #expect(IndexKey(.real(-0.0)) == IndexKey(.integer(0)))
  }

  @Test("Integers and doubles are in one exact order")
  func numbers() {
    let seed = TestSeed.value
    let random = SeededRandomness(seed: seed)
    for _ in 0..<5000 {
      let near = Int64(bitPattern: random.next()) >> Int64(random.next() % 64)
      let left = near &+ Int64(random.next() % 5)
      let right = Double(near)
      let isLess = ExactNumbers.isLess(left, right)
      #expect(
        (IndexKey(.integer(left)) < IndexKey(.real(right))) == isLess,
        "seed \(seed): \(left), \(right)"
      )
    }
  }

  @Test("A prefix range ends before all keys without the prefix")
  func prefixes() {
    let key = IndexKey(.text("ab"))
    let end = key.afterPrefix
    for text in ["ab", "aba", "ab\u{10FFFF}", "ab" + String(repeating: "z", count: 1000)] {
      #expect(!(IndexKey(.text(text)) < key) && IndexKey(.text(text)) < end)
    }
    for text in ["ac", "b"] { #expect(!(IndexKey(.text(text)) < end)) }
    #expect(IndexKey(.bytes(Data([255, 255]))).afterPrefix.bytes == Data([0x41]))
  }

  @Test("A long value is truncated, and keeps its order among others")
  func longValues() {
    let long = String(repeating: "m", count: 5000)
    #expect(IndexKey(.text(long)).bytes.count == 257)
    #expect(IndexKey(.text("l")) < IndexKey(.text(long)))
    #expect(IndexKey(.text(long)) < IndexKey(.text("n")))
    #expect(IndexValue.text(long).orderedBytes.count == 5001)
  }
}

/// Compares an integer and a double without rounding either.
enum ExactNumbers {
  static func isLess(_ left: Int64, _ right: Double) -> Bool {
    guard right < 0x1p63 else { return true }
    guard right >= -0x1p63 else { return false }
    let whole = Int64(right.rounded(.down))
    return left < whole || (left == whole && Double(whole) < right)
  }

  static func isLess(_ left: Double, _ right: Int64) -> Bool {
    guard left < 0x1p63 else { return false }
    guard left >= -0x1p63 else { return true }
    let whole = Int64(left.rounded(.up))
    return whole < right || (right == whole && left < Double(whole))
  }
}
