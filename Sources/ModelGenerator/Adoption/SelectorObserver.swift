import OpenCoreData
import SwiftSyntax

/// A statement that makes a method an observer of notifications by its selector.
struct SelectorObserver {
  /// What is called, and the arguments: the observer, the selector, the name and the object.
  private let base: ExprSyntax
  private let arguments: [ExprSyntax]
  /// What the closure of `AppleShims` does.
  private let body: String

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
      let method = selector.arguments.first?.expression,
      let name = Self.name(of: method),
      case .notification(let label, let throwing)? = Self.parameter(of: name, in: method, of: call)
    else { return nil }
    self.base = base
    self.arguments = arguments.map(\.expression)
    // Objective-C, which calls the method by its selector, drops the error too.
    let attempt = throwing ? "try? " : ""
    switch label {
    case nil: body = "observer, _ in \(attempt)observer.\(name.baseName.text)()"
    case "_": body = "\(attempt)$0.\(name.baseName.text)($1)"
    case let label?: body = "\(attempt)$0.\(name.baseName.text)(\(label): $1)"
    }
  }

  /// The parts of the statement that stand in the replacement too.
  var parts: [ExprSyntax] { [base, arguments[0], arguments[2], arguments[3]] }

  /// The statement with the closure that `AppleShims` takes, of the texts of its parts.
  func replacement(_ text: (ExprSyntax) -> String) -> String {
    let parts = parts.map(text)
    return
      "\(parts[0]).addObserver(\(parts[1]), name: \(parts[2]), object: \(parts[3])) { \(body) }"
  }

  /// What to write in place of a `#selector` that stays.
  static func remedy(for node: MacroExpansionExprSyntax) -> String {
    let call = node.parent?.as(LabeledExprSyntax.self)?.parent?.parent?
      .as(FunctionCallExprSyntax.self)
    let called = call?.calledExpression.trimmedDescription ?? ""
    if called.hasSuffix("addObserver"),
      call?.arguments.contains(where: { $0.label?.text == "name" }) == true
    {
      return "addObserver(forName:object:queue:using:) takes a closure"
    }
    if called == "NSSortDescriptor" || called.hasSuffix(".NSSortDescriptor") {
      // "NSString.localizedStandardCompare(_:)" and "NSString.localizedStandardCompare".
      let method = node.arguments.first?.expression.trimmedDescription ?? ""
      let name = method.split(separator: "(")[0].split(separator: ".").last.map(String.init) ?? ""
      let ordering = SortOrdering(rawValue: name + ":").map { ".\($0)" } ?? "a SortOrdering"
      return "in #else, NSSortDescriptor(key:ascending:ordering:) takes \(ordering)"
    }
    return "put it inside #if or use a closure"
  }

  /// The method's name in `#selector(Self.didSave(_:))`.
  private static func name(of method: ExprSyntax) -> DeclReferenceExprSyntax? {
    method.as(MemberAccessExprSyntax.self)?.declName ?? method.as(DeclReferenceExprSyntax.self)
  }

  /// The parameter of a method; nil where the file does not show it.
  private static func parameter(
    of name: DeclReferenceExprSyntax,
    in method: ExprSyntax,
    of call: FunctionCallExprSyntax
  ) -> MethodFinder.Parameter? {
    let labels = name.argumentNames?.arguments.map(\.name.text)
    let finder = MethodFinder(name: name.baseName.text, labels: labels)
    finder.walk(call.root)
    let written = method.as(MemberAccessExprSyntax.self)?.base?.trimmedDescription ?? "self"
    let isOwn = ["self", "Self"].contains(written)
    let type = isOwn ? MethodFinder.enclosingType(of: call) : written
    // A superclass can have it too.
    let found = type.flatMap { finder.found[$0] } ?? finder.found.values.flatMap(\.self)
    guard let first = found.first else {
      // Another file has it; an observer's method takes the notification.
      return labels?.count == 1 ? .notification(label: labels?[0], throwing: false) : nil
    }
    return found.allSatisfy { $0 == first } ? first : nil
  }
}

/// Finds the declarations of a method in a file.
private final class MethodFinder: SyntaxVisitor {
  enum Parameter: Equatable {
    /// A `Notification` with its label, or nothing at all.
    case notification(label: String?, throwing: Bool)
    case other
  }

  private let name: String
  private let labels: [String]?
  /// The parameters of the methods by the names of their types.
  private(set) var found: [String: [Parameter]] = [:]

  init(name: String, labels: [String]?) {
    self.name = name
    self.labels = labels
    super.init(viewMode: .sourceAccurate)
  }

  override func visit(_ node: FunctionDeclSyntax) -> SyntaxVisitorContinueKind {
    let parameters = node.signature.parameterClause.parameters
    if node.name.text == name, node.parent?.is(MemberBlockItemSyntax.self) == true,
      labels == nil || labels == parameters.map(\.firstName.text),
      let type = Self.enclosingType(of: node)
    {
      found[type, default: []].append(Self.parameter(of: node))
    }
    return .visitChildren
  }

  private static func parameter(of node: FunctionDeclSyntax) -> Parameter {
    let isOfType = node.modifiers.contains { ["static", "class"].contains($0.name.text) }
    let parameters = node.signature.parameterClause.parameters
    let effects = node.signature.effectSpecifiers
    // An asynchronous method has no place in the closure.
    guard !isOfType, effects?.asyncSpecifier == nil else { return .other }
    let throwing = effects?.throwsClause != nil
    guard let first = parameters.first else { return .notification(label: nil, throwing: throwing) }
    let type = first.type.trimmedDescription
    return parameters.count == 1 && ["Notification", "Foundation.Notification"].contains(type)
      ? .notification(label: first.firstName.text, throwing: throwing) : .other
  }

  /// The name of the type that a declaration or statement is in.
  static func enclosingType(of node: some SyntaxProtocol) -> String? {
    var next = node.parent
    while let parent = next {
      if let type = parent.as(ExtensionDeclSyntax.self) {
        return type.extendedType.trimmedDescription
      }
      if let type = parent.asProtocol((any NamedDeclSyntax).self),
        parent.is(ClassDeclSyntax.self)
          || parent.is(ActorDeclSyntax.self) || parent.is(StructDeclSyntax.self)
          || parent.is(EnumDeclSyntax.self) || parent.is(ProtocolDeclSyntax.self)
      {
        return type.name.text
      }
      next = parent.parent
    }
    return nil
  }
}
