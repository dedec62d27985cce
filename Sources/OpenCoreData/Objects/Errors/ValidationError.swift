import Foundation

/// Makes the errors of validation, with the keys that developers read.
enum ValidationError {
  static func make(
    _ code: Int,
    _ object: NSManagedObject,
    _ key: String,
    value: Any?,
    _ sentence: String,
    predicate: NSPredicate? = nil
  ) -> NSError {
    var userInfo: [String: Any] = [
      NSLocalizedDescriptionKey: sentence,
      NSValidationObjectErrorKey: object,
      NSValidationKeyErrorKey: key,
      NSValidationValueErrorKey: value ?? NSNull(),
    ]
    if let predicate { userInfo[NSValidationPredicateErrorKey] = predicate }
    return NSError(domain: NSCocoaErrorDomain, code: code, userInfo: userInfo)
  }

  /// The error of a rule of the model's own: its code, or its sentence.
  static func make(
    _ rule: ValidationRule,
    _ object: NSManagedObject,
    _ key: String,
    value: Any?,
    predicate: NSPredicate
  ) -> NSError {
    switch rule.warning {
    case .code(let code):
      make(code, object, key, value: value, sentence(code, key), predicate: predicate)
    case .message(let text):
      make(
        NSManagedObjectValidationError,
        object,
        key,
        value: value,
        text.isEmpty ? "\(key) is not valid." : text,
        predicate: predicate
      )
    }
  }

  static func sentence(_ code: Int, _ key: String) -> String {
    switch code {
    case NSValidationNumberTooLargeError: "\(key) is too large."
    case NSValidationNumberTooSmallError: "\(key) is too small."
    case NSValidationDateTooLateError: "\(key) is too late."
    case NSValidationDateTooSoonError: "\(key) is too soon."
    case NSValidationStringTooLongError: "\(key) is too long."
    case NSValidationStringTooShortError: "\(key) is too short."
    case NSValidationStringPatternMatchingError: "\(key) does not match its pattern."
    case NSValidationRelationshipLacksMinimumCountError: "Too few items in \(key)."
    case NSValidationRelationshipExceedsMaximumCountError: "Too many items in \(key)."
    default: "\(key) is not valid."
    }
  }

  /// Runs a validation, and adds what it throws to the failures.
  static func collect(into failures: inout [NSError], _ body: () throws -> Void) {
    do {
      try body()
    } catch {
      let error = error as NSError
      // An override may report several failures of one value at once.
      if error.code == NSValidationMultipleErrorsError,
        let details = error.userInfo[NSDetailedErrorsKey] as? [NSError]
      {
        failures += details
      } else {
        failures.append(error)
      }
    }
  }

  /// Throws nothing, the only failure, or one error that lists them all.
  static func raise(_ failures: [NSError], object: NSManagedObject? = nil) throws {
    guard let first = failures.first else { return }
    guard failures.count > 1 else { throw first }
    var userInfo: [String: Any] = [
      NSLocalizedDescriptionKey: "Multiple validation errors occurred.",
      NSDetailedErrorsKey: failures,
    ]
    if let object { userInfo[NSValidationObjectErrorKey] = object }
    throw NSError(
      domain: NSCocoaErrorDomain,
      code: NSValidationMultipleErrorsError,
      userInfo: userInfo
    )
  }
}
