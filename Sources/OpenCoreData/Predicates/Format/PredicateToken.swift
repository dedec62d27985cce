/// A token of the format language.
enum PredicateToken {
  /// A key, a keyword or a function's name with its colons.
  case word(String)
  /// `#key`: a key even where it is spelled like a keyword.
  case key(String)
  case string(String)
  /// Digits without a sign; unsigned, since the smallest integer has no positive counterpart.
  case integer(UInt64)
  case double(Double)
  case variable(String)
  case symbol(String)
  /// The value for `%@` and the number formats.
  case argument(Any?)
  /// The value for `%K`.
  case keyArgument(String)
  case end
}

extension PredicateToken {
  /// The token in error messages.
  var name: String {
    switch self {
    case .word(let text), .symbol(let text): "\"\(text)\""
    case .key(let text): "\"#\(text)\""
    case .string(let text): "the string \"\(text)\""
    case .integer(let value): "the number \(value)"
    case .double(let value): "the number \(value)"
    case .variable(let name): "\"$\(name)\""
    case .argument: "an argument"
    case .keyArgument(let path): "the key path \"\(path)\""
    case .end: "the end"
    }
  }
}
