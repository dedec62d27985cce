import Foundation

/// A description of a property whose value is the result of a fetch.
///
/// ```swift
/// let request = NSFetchRequest<any NSFetchRequestResult>(entityName: "Post")
/// request.predicate = NSPredicate(format: "title == $FETCH_SOURCE.title")
/// let sameTitle = NSFetchedPropertyDescription()
/// sameTitle.name = "sameTitle"
/// sameTitle.fetchRequest = request
/// ```
open class NSFetchedPropertyDescription: NSPropertyDescription, @unchecked Sendable {
  /// The fetch request of a model file, as a value; `fetchRequest` converts it.
  package var requestTemplate: FetchRequestTemplate? { willSet { requireEditable() } }
  /// The request that was set in code, which can express more than a model file.
  private var request: NSFetchRequest<any NSFetchRequestResult>?

  /// The fetch request of the property.
  ///
  /// Its predicate may use two variables: `$FETCH_SOURCE`, the object that has the property, and
  /// `$FETCHED_PROPERTY`, this description, whose user info it may read.
  open var fetchRequest: NSFetchRequest<any NSFetchRequestResult>? {
    get {
      request.map(NSFetchRequest.init(sameAs:))
        ?? requestTemplate.map(NSFetchRequest.init(template:))
    }
    set {
      requestTemplate = newValue?.template
      request = newValue.map(NSFetchRequest.init(sameAs:))
    }
  }

  override var parts: DescriptionParts {
    super.parts.merging(["fetch": requestTemplate]) { _, own in own }
  }

  override func copyValues(to copy: NSPropertyDescription) {
    super.copyValues(to: copy)
    guard let copy = copy as? NSFetchedPropertyDescription else { return }
    copy.requestTemplate = requestTemplate
    copy.request = request
  }
}

/// A description of a column that an expression computes for a fetch of dictionaries.
///
/// ```swift
/// let best = NSExpressionDescription()
/// best.name = "best"
/// best.expression = NSExpression(format: "max:(rating)")
/// best.resultType = .integer16
///
/// let request = NSFetchRequest<NSDictionary>(entityName: "Post")
/// request.resultType = .dictionaryResultType
/// request.propertiesToFetch = [best]
/// let row = try context.fetch(request).first  // ["best": 4]
/// ```
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

  override var parts: DescriptionParts {
    let own: DescriptionParts = [
      "expression": expressionSource?.format, "result": expressionResultType,
    ]
    return super.parts.merging(own) { _, own in own }
  }

  override func copyValues(to copy: NSPropertyDescription) {
    super.copyValues(to: copy)
    guard let copy = copy as? NSExpressionDescription else { return }
    copy.expressionSource = expressionSource
    copy.expressionResultType = expressionResultType
  }
}
