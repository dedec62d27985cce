import Foundation

/// A description of a property whose value is the result of a fetch.
open class NSFetchedPropertyDescription: NSPropertyDescription, @unchecked Sendable {
  /// The fetch behind the property, as a value; the façade makes an `NSFetchRequest` of it.
  package var requestTemplate: FetchRequestTemplate? { willSet { requireEditable() } }

  override func copyValues(to copy: NSPropertyDescription) {
    super.copyValues(to: copy)
    (copy as? NSFetchedPropertyDescription)?.requestTemplate = requestTemplate
  }
}

/// A description of a column that an expression computes for a fetch of dictionaries.
open class NSExpressionDescription: NSPropertyDescription, @unchecked Sendable {
  /// The expression as text, parsed at the first use.
  package var expressionSource: ParsedExpressionSource? { willSet { requireEditable() } }
  /// The type of the expression's value.
  open var expressionResultType = NSAttributeType.undefinedAttributeType {
    willSet { requireEditable() }
  }

  /// The expression that computes the value.
  open var expression: NSExpression? {
    get { expressionSource?.expression }
    set { expressionSource = newValue.map(ParsedExpressionSource.init(expression:)) }
  }

  /// The type of the expression's value, as a structure.
  public var resultType: NSAttributeDescription.AttributeType {
    get { NSAttributeDescription.AttributeType(rawValue: expressionResultType) }
    set { expressionResultType = newValue.rawValue }
  }

  override func copyValues(to copy: NSPropertyDescription) {
    super.copyValues(to: copy)
    guard let copy = copy as? NSExpressionDescription else { return }
    copy.expressionSource = expressionSource
    copy.expressionResultType = expressionResultType
  }
}
