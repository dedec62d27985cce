import SwiftSyntax

/// A statement that makes a method an observer of notifications by its selector.
struct SelectorObserver {
  /// The statement with the closure that `AppleShims` takes.
  var replacement: String

  /// Reads `center.addObserver(self, selector: #selector(didSave(_:)), name: name, object: context)`,
  /// if the file shows that the method takes a `Notification` or nothing.
  init?(_ call: FunctionCallExprSyntax) {
    let arguments = Array(call.arguments)
    guard call.parent?.is(CodeBlockItemSyntax.self) == true, call.trailingClosure == nil,
      let member = call.calledExpression.as(MemberAccessExprSyntax.self), let base = member.base,
      member.declName.baseName.text == "addObserver",
      arguments.map({ $0.label?.text ?? "" }) == ["", "selector", "name", "object"],
      let selector = arguments[1].expression.as(MacroExpansionExprSyntax.self),
      selector.macroName.text == "selector",
      let method = Self.method(selector.arguments.first?.expression),
      let parameter = Self.parameter(of: method, in: call)
    else { return nil }
    let values = arguments.map(\.expression.trimmedDescription)
    let argument = parameter.isEmpty ? "" : (parameter == "_" ? "$1" : "\(parameter): $1")
    let body =
      parameter.isEmpty
      ? "observer, _ in observer.\(method.baseName.text)()"
      : "$0.\(method.baseName.text)(\(argument))"
    replacement =
      "\(base.trimmedDescription).addObserver(\(values[0]), name: \(values[2]), "
      + "object: \(values[3])) { \(body) }"
  }

  /// The method of `#selector(Self.didSave(_:))`.
  private static func method(_ expression: ExprSyntax?) -> DeclReferenceExprSyntax? {
    expression?.as(MemberAccessExprSyntax.self)?.declName
      ?? expression?.as(DeclReferenceExprSyntax.self)
  }

  /// The label of the method's parameter, or nothing where it has none; nil where its type is not known.
  private static func parameter(
    of method: DeclReferenceExprSyntax,
    in call: FunctionCallExprSyntax
  ) -> String? {
    let labels = method.argumentNames?.arguments.map(\.name.text)
    let finder = MethodFinder(name: method.baseName.text, labels: labels)
    finder.walk(call.root)
    guard let found = finder.found else {
      // Another file has it; an observer's method takes the notification.
      return labels?.count == 1 ? labels?[0] : nil
    }
    guard let only = found.first else { return "" }
    let type = only.type.trimmedDescription
    return found.count == 1 && ["Notification", "Foundation.Notification"].contains(type)
      ? only.firstName.text : nil
  }
}

/// Finds the declaration of a method in a file.
private final class MethodFinder: SyntaxVisitor {
  private let name: String
  private let labels: [String]?
  private(set) var found: FunctionParameterListSyntax?

  init(name: String, labels: [String]?) {
    self.name = name
    self.labels = labels
    super.init(viewMode: .sourceAccurate)
  }

  override func visit(_ node: FunctionDeclSyntax) -> SyntaxVisitorContinueKind {
    let parameters = node.signature.parameterClause.parameters
    if found == nil, node.name.text == name,
      labels == nil || labels == parameters.map(\.firstName.text)
    {
      found = parameters
    }
    return .visitChildren
  }
}
