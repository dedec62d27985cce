import Foundation

/// A decimal number's digits as keyed archives have them: words in base 65,536, the lowest first.
extension Decimal {
  /// The words without leading zeros; none of zero and of what is no number.
  var mantissaWords: [UInt16] {
    var words: [UInt16] = []
    let digits = isNaN ? "" : "\(Swift.abs(significand))"
    for digit in digits.compactMap(\.wholeNumberValue) {
      var carry = digit
      for index in words.indices {
        let product = Int(words[index]) * 10 + carry
        words[index] = UInt16(product & 0xFFFF)
        carry = product >> 16
      }
      if carry > 0 { words.append(UInt16(carry)) }
    }
    return words
  }

  /// All eight words, each with its lower byte first.
  var mantissaBytes: Data {
    let padded = (mantissaWords + [UInt16](repeating: 0, count: 8)).prefix(8)
    return Data(padded.flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] })
  }
}
