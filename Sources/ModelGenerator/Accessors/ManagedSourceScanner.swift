import Foundation
import SwiftSyntax

/// Finds the `@NSManaged` members of a module's sources.
struct ManagedSourceScanner {
  private(set) var types: DeclaredTypes
  private(set) var classes: [String: ManagedClass] = [:]
  private(set) var errors: [SourceDiagnostic] = []
  private let module: String
  /// Properties that override inherited ones; which of these are managed is known at the end.
  private var overrides: [(VariableDeclSyntax, SourceReader.Surroundings, AccessLevel)] = []

  /// Scans the files; classes that are generated for the module count as declared.
  init(module: String, files: [SourceFile], generated: [EntityDeclaration] = []) {
    self.module = module
    types = DeclaredTypes(module: module)
    let readers = files.sorted { $0.path < $1.path }.map(SourceReader.init)
    for reader in readers { collectTypes(in: reader) }
    for entity in generated where entity.generation == .class {
      types.add(
        DeclaredTypes.Declaration(
          path: [entity.className],
          kind: .nominal(.class),
          inherited: entity.superclassName,
          access: .public,
          isGeneric: false,
          conditions: [],
          isGenerated: true
        )
      )
    }
    for reader in readers { collectMembers(in: reader) }
    noteOverrides()
  }

  // MARK: Types

  private mutating func collectTypes(in reader: SourceReader) {
    var found: [DeclaredTypes.Declaration] = []
    reader.walk { declaration, surroundings in
      guard var declared = Self.declaration(declaration, surroundings) else { return }
      if !declared.access.isVisibleInOtherFiles {
        declared.fileDiscriminator = discriminator(of: reader.file)
      }
      found.append(declared)
    }
    // An extension with a type may precede the extended type.
    let deepest = found.map(\.path.count).max() ?? 0
    for depth in 0...deepest {
      for declared in found where declared.path.count == depth { types.add(declared) }
    }
  }

  private static func declaration(
    _ syntax: DeclSyntax,
    _ surroundings: SourceReader.Surroundings
  ) -> DeclaredTypes.Declaration? {
    let name: TokenSyntax
    let kind: DeclaredTypes.Declaration.Kind
    let modifiers: DeclModifierListSyntax
    var inherited: InheritanceClauseSyntax?
    var isGeneric = false
    if let type = syntax.as(ClassDeclSyntax.self) {
      (name, kind, modifiers) = (type.name, .nominal(.class), type.modifiers)
      (inherited, isGeneric) = (type.inheritanceClause, type.genericParameterClause != nil)
    } else if let type = syntax.as(StructDeclSyntax.self) {
      (name, kind, modifiers) = (type.name, .nominal(.structure), type.modifiers)
      (inherited, isGeneric) = (type.inheritanceClause, type.genericParameterClause != nil)
    } else if let type = syntax.as(EnumDeclSyntax.self) {
      (name, kind, modifiers) = (type.name, .nominal(.enumeration), type.modifiers)
      (inherited, isGeneric) = (type.inheritanceClause, type.genericParameterClause != nil)
    } else if let type = syntax.as(TypeAliasDeclSyntax.self) {
      (name, kind, modifiers) = (type.name, .alias(type.initializer.value), type.modifiers)
      isGeneric = type.genericParameterClause != nil
    } else if let type = syntax.as(ProtocolDeclSyntax.self) {
      (name, kind, modifiers) = (type.name, .other("a protocol"), type.modifiers)
    } else if let type = syntax.as(ActorDeclSyntax.self) {
      (name, kind, modifiers) = (type.name, .other("an actor"), type.modifiers)
    } else {
      return nil
    }
    let written = syntax.as(ClassDeclSyntax.self)
    return DeclaredTypes.Declaration(
      path: surroundings.path + [name.bareName],
      kind: kind,
      inherited: inherited?.inheritedTypes.first?.type.trimmedDescription,
      access: AccessLevel(modifiers) ?? surroundings.defaultAccess ?? .internal,
      file: surroundings.file,
      isGeneric: isGeneric,
      conditions: surroundings.conditions,
      marksMembers: written?.attributes.mentions("objcMembers") ?? false,
      objectiveCName: written?.attributes.objectiveCName,
      initializesAlone: written?.initializesAlone
    )
  }

  // MARK: Members

  private mutating func collectMembers(in reader: SourceReader) {
    var found: [(DeclSyntax, SourceReader.Surroundings)] = []
    reader.walk { declaration, surroundings in
      if declaration.is(VariableDeclSyntax.self) || declaration.is(FunctionDeclSyntax.self) {
        found.append((declaration, surroundings))
      }
    }
    for (declaration, surroundings) in found {
      do {
        if let variable = declaration.as(VariableDeclSyntax.self) {
          try add(variable, surroundings, reader)
        } else if let method = declaration.as(FunctionDeclSyntax.self) {
          try add(method, surroundings, reader)
        }
      } catch let error as SourceDiagnostic {
        errors.append(error)
      } catch let refusal as TypeResolver.Refusal {
        errors.append(reader.place(of: declaration).error(refusal.message))
      } catch {
        errors.append(reader.place(of: declaration).error("\(error)"))
      }
    }
  }

  /// Notes overrides of managed properties, which Objective-C finds without a mark.
  private mutating func noteOverrides() {
    for (variable, surroundings, access) in overrides {
      guard
        let declaration = types.declaration(
          named: surroundings.path,
          seenFrom: .init(file: surroundings.file)
        ),
        variable.bindings.contains(where: { binding in
          binding.pattern.as(IdentifierPatternSyntax.self).map {
            overridesManagedProperty($0.identifier.bareName, declaration)
          } ?? false
        })
      else { continue }
      noteNamedMember(surroundings, access) { $0.add(variable, surroundings.conditions) }
      let parents = types.superclasses(of: declaration).compactMap(types.nominal)
      let managed = Set(parents.flatMap { classes[$0.key]?.variables.map(\.name) ?? [] })
      guard let type = types.nominal(declaration)?.key else { continue }
      for name in managed.intersection(classes[type]?.overridden ?? []) {
        classes[type]?.managedOverrides[name] = surroundings.conditions
      }
    }
  }

  /// Whether the nearest class that declares the property, and does not override it, has it as a managed
  /// or marked one.
  private func overridesManagedProperty(
    _ name: String,
    _ declaration: DeclaredTypes.Declaration
  ) -> Bool {
    for parent in types.superclasses(of: declaration).compactMap(types.nominal) {
      guard let known = classes[parent.key] else { continue }
      if known.variables.contains(where: { $0.name == name })
        || known.named.properties.contains(where: { $0.spelling == name })
      {
        return true
      }
      if known.visibleProperties.contains(name), !known.overridden.contains(name) { return false }
    }
    // It is inherited from another module, or from `NSManagedObject`.
    return true
  }

  private mutating func add(
    _ variable: VariableDeclSyntax,
    _ surroundings: SourceReader.Surroundings,
    _ reader: SourceReader
  ) throws {
    let isManaged = variable.attributes.contains(named: "NSManaged")
    let access = AccessLevel(variable.modifiers) ?? surroundings.defaultAccess ?? .internal
    guard isManaged else {
      notePlainProperty(variable, surroundings, access)
      if isMarked(variable.attributes, surroundings) {
        noteNamedMember(surroundings, access) { $0.add(variable, surroundings.conditions) }
      } else if variable.modifiers.contains(where: { $0.name.tokenKind == .keyword(.override) }) {
        overrides.append((variable, surroundings, access))
      }
      return
    }
    let place = reader.place(of: variable)
    for binding in variable.bindings {
      guard let name = binding.pattern.as(IdentifierPatternSyntax.self)?.identifier else {
        throw place.error("an @NSManaged property has one name")
      }
      // In `var a, b: Int` only the last name has the type.
      guard let type = binding.typeAnnotation?.type ?? variable.bindings.last?.typeAnnotation?.type
      else { throw place.error("the @NSManaged property '\(name.text)' has no type") }
      var owner = try owner(surroundings, place)
      let resolved = try TypeResolver(types: types).resolve(type, in: surroundings.scope)
      try requireASCII(name.bareName, place)
      let managed = ManagedVariable(
        name: name.bareName,
        spelling: name.text,
        type: resolved,
        access: access,
        fileDiscriminator: owner.isHidden(access) ? discriminator(of: reader.file) : nil,
        conditions: surroundings.conditions,
        place: place
      )
      owner.variables.append(managed)
      if access.isVisibleInOtherFiles { owner.visibleProperties.insert(managed.name) }
      classes[owner.type.key] = owner
    }
  }

  private mutating func notePlainProperty(
    _ variable: VariableDeclSyntax,
    _ surroundings: SourceReader.Surroundings,
    _ access: AccessLevel
  ) {
    guard access.isVisibleInOtherFiles, surroundings.conditions.isEmpty,
      !variable.modifiers.contains(where: { ["static", "class"].contains($0.name.text) }),
      // Errors are ignored here: the class only lacks names of key paths.
      var owner = try? owner(surroundings, SourcePlace(file: "", line: 0, column: 0))
    else { return }
    for binding in variable.bindings {
      if let name = binding.pattern.as(IdentifierPatternSyntax.self)?.identifier.bareName {
        owner.visibleProperties.insert(name)
        if variable.modifiers.contains(where: { $0.name.tokenKind == .keyword(.override) }) {
          owner.overridden.insert(name)
        }
      }
    }
    classes[owner.type.key] = owner
  }

  /// Whether a member is marked for Objective-C.
  ///
  /// Accessors that a macro writes are the model's own.
  private func isMarked(
    _ attributes: AttributeListSyntax,
    _ surroundings: SourceReader.Surroundings
  ) -> Bool {
    guard !attributes.contains(named: "Managed") else { return false }
    return attributes.mentions("objc")
      || types.declaration(named: surroundings.path, seenFrom: .init(file: surroundings.file))?
        .marksMembers ?? false
  }

  /// Notes a member of a managed object's class that Objective-C would find.
  private mutating func noteNamedMember(
    _ surroundings: SourceReader.Surroundings,
    _ access: AccessLevel,
    _ add: (inout NamedMembers) -> Void
  ) {
    guard access.isVisibleInOtherFiles, !surroundings.isOfOtherActor,
      let declaration = types.declaration(
        named: surroundings.path,
        seenFrom: .init(file: surroundings.file)
      ),
      types.isManagedObject(declaration),
      // Errors are ignored here, as for plain properties.
      var owner = try? owner(surroundings, SourcePlace(file: "", line: 0, column: 0))
    else { return }
    add(&owner.named)
    classes[owner.type.key] = owner
  }

  private mutating func add(
    _ method: FunctionDeclSyntax,
    _ surroundings: SourceReader.Surroundings,
    _ reader: SourceReader
  ) throws {
    let access = AccessLevel(method.modifiers) ?? surroundings.defaultAccess ?? .internal
    guard method.attributes.contains(named: "NSManaged") else {
      if isMarked(method.attributes, surroundings) {
        noteNamedMember(surroundings, access) { $0.add(method, surroundings.conditions) }
      }
      return
    }
    let place = reader.place(of: method)
    var owner = try owner(surroundings, place)
    try requireASCII(method.name.bareName, place)
    let resolver = TypeResolver(types: types)
    var parameters: [(label: String?, type: SwiftType)] = []
    for parameter in method.signature.parameterClause.parameters {
      let label = parameter.firstName.bareName
      parameters.append(
        (label == "_" ? nil : label, try resolver.resolve(parameter.type, in: surroundings.scope))
      )
    }
    var result: SwiftType?
    if let type = method.signature.returnClause?.type, type.trimmedDescription != "Void" {
      result = try resolver.resolve(type, in: surroundings.scope)
    }
    owner.methods.append(
      ManagedMethod(
        name: method.name.bareName,
        parameters: parameters,
        result: result,
        access: access,
        fileDiscriminator: owner.isHidden(access) ? discriminator(of: reader.file) : nil,
        conditions: surroundings.conditions,
        place: place
      )
    )
    classes[owner.type.key] = owner
  }

  // MARK: Owners

  private func owner(
    _ surroundings: SourceReader.Surroundings,
    _ place: SourcePlace
  ) throws(SourceDiagnostic) -> ManagedClass {
    let name = surroundings.path.joined(separator: ".")
    guard
      var declaration = types.declaration(
        named: surroundings.path,
        seenFrom: .init(file: surroundings.file)
      )
    else {
      throw place.error(
        "the class '\(name)' is not declared in the module '\(module)'; an @NSManaged member in "
          + "an extension of another module's class gets no accessor on this platform"
      )
    }
    if case .alias(let target) = declaration.kind,
      let aliased = types.declaration(
        named: target.trimmedDescription.split(separator: ".").map(String.init),
        seenFrom: .init(path: Array(declaration.path.dropLast()), file: declaration.file)
      )
    {
      declaration = aliased
    }
    guard !declaration.isGeneric else {
      throw place.error("the class '\(name)' is generic; an entity's class cannot be")
    }
    guard case .nominal(.class) = declaration.kind, let type = types.nominal(declaration) else {
      throw place.error("'\(name)' is not a class; @NSManaged requires a managed object class")
    }
    return classes[type.key]
      ?? ManagedClass(
        type: type,
        access: type.isHidden ? .private : declaration.access,
        conditions: declaration.conditions
      )
  }

  private func requireASCII(_ name: String, _ place: SourcePlace) throws {
    guard name.utf8.allSatisfy({ $0 < 0x80 }) else {
      throw place.error("the symbol of '\(name)' cannot be spelled; use the letters of ASCII")
    }
  }

  /// The private discriminator of a file: the compiler uses the MD5 of the module's and the file's
  /// name.
  private func discriminator(of file: SourceFile) -> String {
    let digest = MD5.digest(module + file.name)
    let digits = Array("0123456789ABCDEF")
    return "_" + digest.map { "\(digits[Int($0 >> 4)])\(digits[Int($0 & 15)])" }.joined()
  }
}

extension AttributeListSyntax {
  func contains(named name: String) -> Bool {
    contains { element in
      if case .attribute(let attribute) = element {
        attribute.attributeName.trimmedDescription == name
      } else {
        false
      }
    }
  }
}
