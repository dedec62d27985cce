import SwiftCompilerPlugin
import SwiftSyntaxMacros

@main
struct ManagedMacroPlugin: CompilerPlugin {
  let providingMacros: [any Macro.Type] = [ManagedMacro.self, ManagedObjectMacro.self]
}
