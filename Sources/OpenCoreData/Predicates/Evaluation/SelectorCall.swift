import Foundation

/// A call of a method by name: `FUNCTION(target, 'selector:', …)`.
///
/// Swift on Linux can't call methods by name, so the known selectors of predicates are implemented
/// here, or are the `methods` of a function.
enum SelectorCall {
  static func value(
    _ selector: String,
    of target: Any?,
    _ arguments: [ExpressionValue]
  ) throws -> ExpressionValue {
    let value = ExpressionValue(target)
    if let function = PredicateFunction.method(selector) {
      return function.value(of: [value] + arguments)
    }
    let argument = arguments.first ?? .null
    switch selector {
    case "valueForKey:", "valueForKeyPath:":
      let keys = (argument.text ?? "").split(separator: ".").map(String.init)
      return ExpressionValue(KeyPathWalk.value(of: target, keys))
    case "firstObject": return value.members.first ?? .null
    case "lastObject": return value.members.last ?? .null
    case "stringByAppendingString:":
      guard let left = value.text, let right = argument.text else { return .null }
      return .string(left + right)
    case "intValue", "integerValue", "longLongValue", "doubleValue", "floatValue":
      return PredicateFunction.cast.value(of: [value, .string("NSNumber")])
    case "absoluteString", "stringValue", "description", "UUIDString":
      return PredicateFunction.cast.value(of: [value, .string("NSString")])
    default:
      throw PredicateEvaluationError.unknownSelector(selector)
    }
  }
}
