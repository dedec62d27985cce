import Foundation

/// The type of an ``NSFetchRequestExpression``.
public var NSFetchRequestExpressionType: NSExpression.ExpressionType { .fetchRequest }

/// A fetch request without its generic type.
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

/// An expression whose value is the results of a fetch request in a context.
///
/// It can be evaluated in memory only. In the format language it is `FETCH(request, context, NO)`,
/// or with `YES` for the count.
open class NSFetchRequestExpression: NSExpression {
  /// The expression of the request.
  public let requestExpression: NSExpression
  /// The expression of the context.
  public let contextExpression: NSExpression
  /// Whether the value is the number of objects instead of the objects.
  public let isCountOnlyRequest: Bool

  private init(_ request: NSExpression, _ context: NSExpression, countOnly: Bool) {
    requestExpression = request
    contextExpression = context
    isCountOnlyRequest = countOnly
    super.init(tree: .fetch(request.tree, context.tree, countOnly))
  }

  /// Reads an expression from an archive; nil if it is not a fetch.
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
  /// Evaluating it stops the process if the first is not a fetch request or the second is not a
  /// context.
  open class func expression(
    forFetch fetch: NSExpression,
    context: NSExpression,
    countOnly countFlag: Bool
  ) -> NSExpression {
    NSFetchRequestExpression(fetch, context, countOnly: countFlag)
  }

  /// ``NSFetchRequestExpressionType``.
  open override var expressionType: ExpressionType { .fetchRequest }

  /// The results of the request in the context, or their number; throws where the store cannot be read.
  static func value(request: Any?, context: Any?, countOnly: Bool) throws -> Any {
    guard let request = flattened(request) as? any ErasedFetchRequest,
      let context = flattened(context) as? NSManagedObjectContext
    else {
      InvalidArgument.stop(
        "Can't evaluate fetch request expression: it needs a fetch request and a context"
      )
    }
    if countOnly { return NSNumber(value: try request.erasedCount(in: context)) }
    return try request.erasedResults(in: context)
  }
}
