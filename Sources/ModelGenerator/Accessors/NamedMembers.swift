import SwiftSyntax

/// The members of a class that Objective-C would find by their names.
struct NamedMembers {
  /// A member, with what is looked up and how the source spells it.
  struct Member {
    var key: String
    var spelling: String
    var conditions: [String]
  }

  /// Properties that key-value coding finds.
  var properties: [Member] = []
  /// Methods `validate<Key>(_:)`.
  var rules: [Member] = []
  /// Methods `keyPathsForValuesAffecting<Key>()`.
  var dependencies: [Member] = []

  var isEmpty: Bool { properties.isEmpty && rules.isEmpty && dependencies.isEmpty }

  /// Adds the names of a property that other files can read without waiting or failing.
  mutating func add(_ variable: VariableDeclSyntax, _ conditions: [String]) {
    guard !variable.modifiers.contains(where: { ["static", "class"].contains($0.name.text) }),
      variable.attributes.isCallableFromGeneratedCode
    else { return }
    for binding in variable.bindings {
      guard let name = binding.pattern.as(IdentifierPatternSyntax.self)?.identifier,
        !binding.hasEffects
      else { continue }
      let key = variable.attributes.objectiveCName ?? name.bareName
      properties.append(Member(key: key, spelling: name.text, conditions: conditions))
    }
  }

  /// Adds a method if its name and its type are those of a rule or of dependencies.
  mutating func add(_ method: FunctionDeclSyntax, _ conditions: [String]) {
    let name = method.name.bareName
    guard method.attributes.isCallableFromGeneratedCode,
      method.signature.effectSpecifiers?.asyncSpecifier == nil,
      method.genericParameterClause == nil
    else { return }
    let isOfType = method.modifiers.contains { ["static", "class"].contains($0.name.text) }
    let parameters = method.signature.parameterClause.parameters
    let canThrow = method.signature.effectSpecifiers?.throwsClause != nil
    func member(after prefix: String) -> Member? {
      let key = name.dropFirst(prefix.count)
      guard name.hasPrefix(prefix), key.first?.isUppercase == true else { return nil }
      return Member(key: String(key), spelling: method.name.text, conditions: conditions)
    }
    if isOfType, parameters.isEmpty, !canThrow,
      method.signature.returnClause?.type.trimmedDescription == "Set<String>",
      let member = member(after: "keyPathsForValuesAffecting")
    {
      dependencies.append(member)
    } else if !isOfType, canThrow, parameters.count == 1, let parameter = parameters.first,
      parameter.firstName.bareName == "_",
      parameter.type.trimmedDescription.hasPrefix("AutoreleasingUnsafeMutablePointer<"),
      let member = member(after: "validate")
    {
      rules.append(member)
    }
  }
}

/// Writes the class in which the runtime looks up members by their names.
struct NamedMembersWriter {
  let classes: [ManagedClass]

  func write(into code: inout SwiftCode) {
    let classes = classes.filter { !$0.named.isEmpty && $0.access.isVisibleInOtherFiles }
    guard !classes.isEmpty else { return }
    code.line()
    code.line("/// The members of this module's classes that are found by their names.")
    code.block("nonisolated final class ManagedMemberNames: ManagedMemberNaming") { code in
      code.block(
        "static func add(membersOf type: NSManagedObject.Type, "
          + "to members: inout ManagedNamedMembers)"
      ) { $0.line("members.add(membersOf: type, by: { addAll($0, &$1) })") }
      code.line()
      // Members may be isolated to the main actor: by an attribute, or by the module's default.
      code.block(
        "@MainActor private static func addAll(_ type: NSManagedObject.Type, "
          + "_ members: inout ManagedNamedMembers)"
      ) { code in
        for (index, type) in classes.enumerated() {
          code.conditional(type.conditions) { code in
            code.block(
              "if let type = type as? any (\(type.type.text) & NSFetchRequestResult).Type"
            ) {
              $0.line("add\(index)(type, &members)")
            }
          }
        }
      }
      for (index, type) in classes.enumerated() {
        code.line()
        code.conditional(type.conditions) { write(type, index, into: &$0) }
      }
    }
  }

  private func write(_ type: ManagedClass, _ index: Int, into code: inout SwiftCode) {
    code.block(
      "@MainActor private static func add\(index)<Root: \(type.type.text)>"
        + "(_: Root.Type, _ members: inout ManagedNamedMembers)"
    ) { code in
      for member in type.named.properties {
        code.conditional(member.conditions) {
          $0.line("members.add(\(SwiftCode.literal(member.key)), \\Root.\(member.spelling))")
        }
      }
      for member in type.named.rules {
        code.conditional(member.conditions) {
          $0.line(
            "members.addRule(\(SwiftCode.literal(member.key))) "
              + "{ try unsafeDowncast($0, to: Root.self).\(member.spelling)($1) }"
          )
        }
      }
      for member in type.named.dependencies {
        code.conditional(member.conditions) {
          $0.line(
            "members.addDependencies(\(SwiftCode.literal(member.key))) "
              + "{ Root.\(member.spelling)() }"
          )
        }
      }
    }
  }
}

extension PatternBindingSyntax {
  /// Whether reading it waits or fails.
  fileprivate var hasEffects: Bool {
    guard case .accessors(let accessors) = accessorBlock?.accessors else { return false }
    return accessors.contains { $0.effectSpecifiers != nil }
  }
}

extension AttributeListSyntax {
  /// The attributes, with those inside of `#if canImport(ObjectiveC)`.
  private var everywhere: [AttributeSyntax] {
    flatMap { element -> [AttributeSyntax] in
      switch element {
      case .attribute(let attribute): return [attribute]
      case .ifConfigDecl(let conditional):
        return conditional.clauses.flatMap { clause -> [AttributeSyntax] in
          guard case .attributes(let attributes) = clause.elements else { return [] }
          return attributes.everywhere
        }
      }
    }
  }

  /// Whether there is an attribute of the name, for this platform or Apple's.
  func mentions(_ name: String) -> Bool {
    everywhere.contains { $0.attributeName.trimmedDescription == name }
  }

  /// The name in `@objc(name)`.
  var objectiveCName: String? {
    let mark = everywhere.first { $0.attributeName.trimmedDescription == "objc" }
    guard let name = mark?.arguments?.trimmedDescription, !name.isEmpty, !name.contains(":")
    else { return nil }
    return name
  }

  /// Whether the attributes isolate to a global actor that is not the main actor.
  var namesOtherActor: Bool {
    everywhere.contains { attribute in
      let name = attribute.attributeName.trimmedDescription
      return name.hasSuffix("Actor") && name != "MainActor"
    }
  }

  /// Whether generated code can use the member: it is not unavailable, and of no global actor but the
  /// main actor.
  fileprivate var isCallableFromGeneratedCode: Bool {
    !namesOtherActor
      && !everywhere.contains { attribute in
        attribute.attributeName.trimmedDescription == "available"
          && attribute.arguments?.trimmedDescription.contains("unavailable") == true
      }
  }
}
