import Foundation

/// A call of a method by name: `FUNCTION(target, 'selector:', …)`.
///
/// Swift on Linux can't call methods by name, so the known selectors of predicates are implemented
/// here.
enum SelectorCall {
  static func value(
    _ selector: String,
    of target: Any?,
    _ arguments: [ExpressionValue]
  ) throws -> ExpressionValue {
    let value = ExpressionValue(target)
    let argument = arguments.first ?? .null
    switch selector {
    case "valueForKey:", "valueForKeyPath:":
      let keys = (argument.text ?? "").split(separator: ".").map(String.init)
      return ExpressionValue(KeyPathWalk.value(of: target, keys))
    case "uppercaseString": return ExpressionFunction.apply("uppercase:", [value])
    case "lowercaseString": return ExpressionFunction.apply("lowercase:", [value])
    case "length": return ExpressionFunction.apply("length:", [value])
    case "count": return ExpressionFunction.apply("count:", [value])
    case "firstObject": return value.members.first ?? .null
    case "lastObject": return value.members.last ?? .null
    case "objectAtIndex:":
      return ExpressionFunction.apply("objectFrom:withIndex:", [value, argument])
    case "timeIntervalSinceDate:":
      return ExpressionFunction.apply("from:subtract:", [value, argument])
    case "dateByAddingTimeInterval:":
      return ExpressionFunction.apply("add:to:", [value, argument])
    case "stringByAppendingString:":
      guard let left = value.text, let right = argument.text else { return .null }
      return .string(left + right)
    case "intValue", "integerValue", "longLongValue", "doubleValue", "floatValue":
      return ExpressionFunction.apply("castObject:toType:", [value, .string("NSNumber")])
    case "absoluteString", "stringValue", "description", "UUIDString":
      return ExpressionFunction.apply("castObject:toType:", [value, .string("NSString")])
    default:
      throw PredicateEvaluationError.unknownSelector(selector)
    }
  }
}
