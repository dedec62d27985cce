import Effects
import Foundation
import OpenCoreData

/// Creates a valid, distinct value for any attribute, from a seed.
///
/// Numbers are multiples of a quarter and dates are whole seconds, which JSON, milliseconds and
/// SQLite's REAL represent exactly: any difference is an error.
struct SampleValues {
  let random: SeededRandomness

  /// A value for the attribute, or nil if none can be created and nil is allowed.
  func value(for attribute: NSAttributeDescription, ordinal: Int) -> Any? {
    let limits = attribute.limits
    switch attribute.attributeType {
    case .integer16AttributeType, .integer32AttributeType, .integer64AttributeType:
      let range = integerRange(attribute.attributeType, limits)
      let span = UInt64(min(range.upperBound - range.lowerBound, 20_000)) + 1
      return NSNumber(value: range.lowerBound + Int64((next() &+ UInt64(ordinal)) % span))
    case .decimalAttributeType:
      return NSDecimalNumber(decimal: Decimal(quarters(limits)))
    case .doubleAttributeType, .floatAttributeType:
      return NSNumber(value: quarters(limits))
    case .booleanAttributeType:
      return NSNumber(value: next() % 2 == 0)
    case .stringAttributeType:
      return text(limits, ordinal: ordinal)
    case .dateAttributeType:
      return date(limits)
    case .binaryDataAttributeType:
      return random.bytes(48 + Int(next() % 64))
    case .UUIDAttributeType:
      return random.uuid()
    case .URIAttributeType:
      return URL(string: "https://example.com/\(ordinal)/\(word())")
    case .transformableAttributeType:
      return transformable(attribute)
    case .compositeAttributeType:
      return composite(attribute, ordinal: ordinal)
    default:
      return nil
    }
  }

  func next() -> UInt64 { random.next() }

  func word() -> String {
    let words = [
      "rain", "delta", "spring", "cloud", "river", "vapour", "lake", "snow", "fjord", "tide",
    ]
    return words[Int(next() % UInt64(words.count))]
  }

  private func integerRange(
    _ type: NSAttributeType,
    _ limits: AttributeLimits
  ) -> ClosedRange<Int64> {
    let bounds: ClosedRange<Int64> = type == .integer16AttributeType ? 0...20_000 : 0...1_000_000
    let low = limits.minimum.map { NSDecimalNumber(decimal: $0).int64Value } ?? bounds.lowerBound
    let high = limits.maximum.map { NSDecimalNumber(decimal: $0).int64Value } ?? bounds.upperBound
    if low <= high { return low...high }
    return limits.minimum == nil ? high...high : low...low
  }

  private func quarters(_ limits: AttributeLimits) -> Double {
    let value = Double(next() % 4000) / 4
    let low = limits.minimum.map { NSDecimalNumber(decimal: $0).doubleValue }
    let high = limits.maximum.map { NSDecimalNumber(decimal: $0).doubleValue }
    switch (low, high) {
    case (nil, nil): return value
    case (let low?, nil): return max(low, value)
    case (nil, let high?): return min(high, value)
    case (let low?, let high?): return min(high, max(low, value))
    }
  }

  private func text(_ limits: AttributeLimits, ordinal: Int) -> String? {
    var text = "\(word()) \(word()) \(ordinal) \(String(next() % 0xFFFF, radix: 16)) – ü 水"
    if let minimum = limits.minimumLength {
      while text.count < minimum { text += " \(word())" }
    }
    if let maximum = limits.maximumLength, maximum > 0 { text = String(text.suffix(maximum)) }
    guard let pattern = limits.regularExpression else { return text }
    // A text for an arbitrary pattern cannot be created in general; common patterns are covered.
    let candidates = [
      text, "\(word())@example.com", "https://example.com/\(ordinal)", "\(ordinal)", "a",
      "12345", "ABC", "abc", "2024-01-01", "+4912345678", "",
    ]
    return candidates.first { candidate in
      candidate.range(of: "^(?:\(pattern))$", options: .regularExpression) != nil
    }
  }

  private func date(_ limits: AttributeLimits) -> Date {
    let value = Date(timeIntervalSince1970: 1_600_000_000 + Double(next() % 100_000_000))
    if let minimum = limits.minimumDate, value < minimum { return minimum }
    if let maximum = limits.maximumDate, value > maximum { return maximum }
    return value
  }

  private func transformable(_ attribute: NSAttributeDescription) -> Any? {
    if let name = attribute.valueTransformerName, !name.isEmpty,
      ValueTransformer.valueTransformer(forName: NSValueTransformerName(name)) == nil
    {
      return nil
    }
    return NSString(string: "\(word())-\(next() % 256)")
  }

  private func composite(_ attribute: NSAttributeDescription, ordinal: Int) -> Any? {
    guard let composite = attribute as? NSCompositeAttributeDescription else { return nil }
    var values: [String: Any] = [:]
    for element in composite.elements {
      values[element.name] = value(for: element, ordinal: ordinal)
    }
    return values
  }
}
