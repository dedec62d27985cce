import Foundation

extension Decimal {
  /// The shortest decimal that reads as the double: 0.1 stays 0.1; NaN where none can hold it.
  ///
  /// Foundation's own conversion stops the program on Linux beyond some 1e127.
  package init(nearest value: Double) {
    self = Decimal(string: "\(value)", locale: Self.posix) ?? Self.farFromZeroOrNear(value) ?? .nan
  }

  /// A decimal beyond 1e144 or below 1e-111, which Foundation does not read from 17 digits.
  ///
  /// An exponent ends at 127 and at -128; more digits, or fewer, make it fit.
  private static func farFromZeroOrNear(_ value: Double) -> Decimal? {
    guard value.isFinite else { return nil }
    for format in ["%.37e", "%.38e", "%.128f"] {
      let text = String(format: format, locale: posix, value)
      if let decimal = Decimal(string: text, locale: posix), !decimal.isNaN, !decimal.isZero {
        return decimal
      }
    }
    return nil
  }

  /// The exact value of a number of any kind; NaN where no decimal can hold it.
  ///
  /// Foundation's own `decimalValue` goes through a double on Linux.
  package init(of number: NSNumber) {
    if let decimal = number as? NSDecimalNumber {
      self = decimal.decimalValue
      return
    }
    switch UInt8(bitPattern: number.objCType.pointee) {
    case UInt8(ascii: "d"), UInt8(ascii: "f"): self.init(nearest: number.doubleValue)
    case UInt8(ascii: "Q"): self.init(number.uint64Value)
    default: self.init(number.int64Value)
    }
  }

  private static let posix = Locale(identifier: "en_US_POSIX")
}
