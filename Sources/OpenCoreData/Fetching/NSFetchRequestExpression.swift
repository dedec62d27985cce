import Foundation

/// The type of an ``NSFetchRequestExpression``.
public var NSFetchRequestExpressionType: NSExpression.ExpressionType { .fetchRequest }

/// A fetch request whose type is not known.
protocol ErasedFetchRequest: NSPersistentStoreRequest {
  func erasedResults(in context: NSManagedObjectContext) throws -> [Any]
  func erasedCount(in context: NSManagedObjectContext) throws -> Int
}

extension NSFetchRequest: ErasedFetchRequest {
  func erasedResults(in context: NSManagedObjectContext) throws -> [Any] {
    try context.results(of: self)
  }

  func erasedCount(in context: NSManagedObjectContext) throws -> Int {
    try context.erasedCount(of: self)
  }
}

/// An expression whose value is what a fetch request finds in a context.
///
/// It is evaluated in memory only. In the format language it is `FETCH(request, context, NO)`, and
/// `YES` is for the count alone.
open class NSFetchRequestExpression: NSExpression {
  /// The expression of the request.
  public let requestExpression: NSExpression
  /// The expression of the context.
  public let contextExpression: NSExpression
  /// Whether the value is how many objects are found, and not the objects.
  public let isCountOnlyRequest: Bool

  private init(_ request: NSExpression, _ context: NSExpression, countOnly: Bool) {
    requestExpression = request
    contextExpression = context
    isCountOnlyRequest = countOnly
    super.init(tree: .fetch(request.tree, context.tree, countOnly))
  }

  /// Reads an expression out of an archive; nil where it is no fetch.
  public required init?(coder: NSCoder) {
    guard let read = NSExpression(coder: coder),
      case .fetch(let request, let context, let isCount) = read.tree
    else { return nil }
    requestExpression = NSExpression(tree: request)
    contextExpression = NSExpression(tree: context)
    isCountOnlyRequest = isCount
    super.init(tree: read.tree)
  }

  /// Makes an expression that runs a request in a context, both given as expressions.
  ///
  /// Where the first is no fetch request or the second no context, evaluating it stops the program.
  open class func expression(
    forFetch fetch: NSExpression,
    context: NSExpression,
    countOnly countFlag: Bool
  ) -> NSExpression {
    NSFetchRequestExpression(fetch, context, countOnly: countFlag)
  }

  /// ``NSFetchRequestExpressionType``.
  open override var expressionType: ExpressionType { .fetchRequest }

  /// What the request finds in the context, or how many objects that are.
  static func value(request: Any?, context: Any?, countOnly: Bool) -> Any {
    guard let request = flattened(request) as? any ErasedFetchRequest,
      let context = flattened(context) as? NSManagedObjectContext
    else {
      InvalidArgument.stop(
        "Can't evaluate fetch request expression: it needs a fetch request and a context"
      )
    }
    do {
      if countOnly { return NSNumber(value: try request.erasedCount(in: context)) }
      return try request.erasedResults(in: context)
    } catch {
      InvalidArgument.stop("Can't evaluate fetch request expression: \(error)")
    }
  }
}
