import Foundation

/// The bounds that the model editor sets on an attribute's values.
package struct AttributeLimits: Sendable, Hashable {
  package var minimum: Decimal?
  package var maximum: Decimal?
  package var minimumDate: Date?
  package var maximumDate: Date?
  package var minimumLength: Int?
  package var maximumLength: Int?
  /// A pattern that the whole text must match.
  package var regularExpression: String?

  package init() {}

  package var isEmpty: Bool { self == AttributeLimits() }

  /// The limits as the rules that the model compiler writes, with its error codes.
  package var rules: [ValidationRule] {
    var rules: [ValidationRule] = []
    func add(_ format: String, _ code: Int) {
      rules.append(ValidationRule(format: format, warning: .code(code)))
    }
    if let minimum { add("SELF >= \(minimum)", 1620) }
    if let maximum { add("SELF <= \(maximum)", 1610) }
    if let minimumDate {
      add("SELF >= CAST(\(minimumDate.timeIntervalSinceReferenceDate), \"NSDate\")", 1640)
    }
    if let maximumDate {
      add("SELF <= CAST(\(maximumDate.timeIntervalSinceReferenceDate), \"NSDate\")", 1630)
    }
    if let minimumLength { add("length >= \(minimumLength)", 1670) }
    if let maximumLength { add("length <= \(maximumLength)", 1660) }
    if let regularExpression { add("SELF MATCHES \(quoted(regularExpression))", 1680) }
    return rules
  }

  /// Reads a rule that the model compiler wrote; false if it is not one of these limits.
  package mutating func absorb(_ format: String) -> Bool {
    if let text = remainder(of: format, after: "SELF MATCHES ") {
      guard let pattern = unquoted(text) else { return false }
      regularExpression = pattern
      return true
    }
    for (prefix, isMinimum) in [("SELF >= ", true), ("SELF <= ", false)] {
      guard let text = remainder(of: format, after: prefix) else { continue }
      if let inner = castArgument(text), let seconds = Double(inner) {
        let date = Date(timeIntervalSinceReferenceDate: seconds)
        if isMinimum { minimumDate = date } else { maximumDate = date }
        return true
      }
      guard let number = wholeDecimal(text) else { return false }
      if isMinimum { minimum = number } else { maximum = number }
      return true
    }
    for (prefix, isMinimum) in [("length >= ", true), ("length <= ", false)] {
      guard let text = remainder(of: format, after: prefix), let length = Int(text) else {
        continue
      }
      if isMinimum { minimumLength = length } else { maximumLength = length }
      return true
    }
    return false
  }

  private func remainder(of text: String, after prefix: String) -> String? {
    text.hasPrefix(prefix) ? String(text.dropFirst(prefix.count)) : nil
  }

  private func castArgument(_ text: String) -> String? {
    let suffix = ", \"NSDate\")"
    guard text.hasPrefix("CAST("), text.hasSuffix(suffix) else { return nil }
    return String(text.dropFirst(5).dropLast(suffix.count))
  }
}

/// A decimal number; nil if the text contains anything else.
func wholeDecimal(_ text: String) -> Decimal? {
  let allowed = text.allSatisfy { $0.isASCII && ($0.isNumber || "+-.eE".contains($0)) }
  guard allowed, !text.isEmpty, text.contains(where: \.isNumber), Double(text) != nil else {
    return nil
  }
  return Decimal(string: text, locale: Locale(identifier: "en_US_POSIX"))
}

/// A string literal of the predicate format.
func quoted(_ text: String) -> String {
  var result = "\""
  for character in text {
    switch character {
    case "\"": result += "\\\""
    case "\\": result += "\\\\"
    default: result.append(character)
    }
  }
  return result + "\""
}

/// The text of a string literal that `quoted` wrote.
func unquoted(_ literal: String) -> String? {
  guard literal.count >= 2, literal.hasPrefix("\""), literal.hasSuffix("\"") else { return nil }
  var result = ""
  var isEscaped = false
  for character in literal.dropFirst().dropLast() {
    if isEscaped {
      result.append(character)
      isEscaped = false
    } else if character == "\\" {
      isEscaped = true
    } else if character == "\"" {
      return nil
    } else {
      result.append(character)
    }
  }
  return isEscaped ? nil : result
}
