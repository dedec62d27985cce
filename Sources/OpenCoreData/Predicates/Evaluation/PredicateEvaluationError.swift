/// An error of a predicate that can't be evaluated with any object.
package enum PredicateEvaluationError: Error, Sendable, Hashable, CustomStringConvertible {
  case unboundVariable(String)
  case unknownSelector(String)

  package var description: String {
    switch self {
    case .unboundVariable(let name):
      "Can't get value for '\(name)' in bindings: give it to evaluate(with:substitutionVariables:) "
        + "or to withSubstitutionVariables(_:)."
    case .unknownSelector(let selector):
      "FUNCTION() knows no selector '\(selector)'."
    }
  }
}
