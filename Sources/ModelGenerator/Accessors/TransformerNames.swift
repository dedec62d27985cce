import SwiftSyntax

/// Writes the class in which the runtime looks up value transformers by the names of their classes.
///
/// A model names the class of a transformer, and on Apple's platforms no code need register it.
struct TransformerNamesWriter {
  let types: DeclaredTypes

  func write(into code: inout SwiftCode) {
    let found = types.byPath.values.filter(canBeMade)
      .sorted { $0.path.joined(separator: ".") < $1.path.joined(separator: ".") }
    guard !found.isEmpty else { return }
    code.line()
    code.line("/// The value transformers of this module, which a model names by their classes.")
    code.block("nonisolated final class ManagedTransformerNames: ValueTransformerNaming") { code in
      code.block("static func transformer(ofClassNamed name: String) -> ValueTransformer?") {
        $0.line("ValueTransformer.made(name, by: { make($0) })")
      }
      code.line()
      // A module's classes may be isolated to the main actor by its default.
      let signature = "make(_ name: String) -> ValueTransformer?"
      code.block("@MainActor private static func \(signature)") { code in
        for type in found {
          let path = type.path.joined(separator: ".")
          let names = Set([
            type.objectiveCName ?? type.path.last ?? path, "\(types.module).\(path)",
          ])
          let list = names.sorted().map(SwiftCode.literal).joined(separator: ", ")
          code.conditional(type.conditions) {
            $0.line("if [\(list)].contains(name) { return \(path)() }")
          }
        }
        code.line("return nil")
      }
    }
  }

  private func canBeMade(_ type: DeclaredTypes.Declaration) -> Bool {
    guard case .nominal(.class) = type.kind, !type.isGeneric, types.nominal(type) != nil else {
      return false
    }
    let line = [type] + types.superclasses(of: type)
    let bases = ["ValueTransformer", "NSSecureUnarchiveFromDataTransformer"]
    guard let base = line.last?.inherited?.split(separator: ".").last.map(String.init),
      bases.contains(base)
    else { return false }
    // A class that declares no initializer inherits those of its superclass.
    return line.lazy.compactMap(\.initializesAlone).first ?? true
  }
}

extension ClassDeclSyntax {
  /// Whether the class has an initializer that is called without arguments; nil where it inherits all
  /// initializers of its superclass.
  var initializesAlone: Bool? {
    let all = memberBlock.members.compactMap { $0.decl.as(InitializerDeclSyntax.self) }
    if all.contains(where: \.isCalledWithoutArguments) { return true }
    let designated = all.filter { initializer in
      !initializer.modifiers.contains { $0.name.tokenKind == .keyword(.convenience) }
    }
    return designated.isEmpty ? nil : false
  }
}

extension InitializerDeclSyntax {
  fileprivate var isCalledWithoutArguments: Bool {
    optionalMark == nil && signature.effectSpecifiers == nil && genericParameterClause == nil
      && signature.parameterClause.parameters.allSatisfy { $0.defaultValue != nil }
      && AccessLevel(modifiers)?.isVisibleInOtherFiles ?? true
  }
}
