/// Writes the classes of entities in Xcode's form.
///
/// Properties are computed and use a `ManagedProperty`, which accesses values by index. A to-many
/// relationship has Xcode's `NSSet?` and, in addition, `typedTags: Set<Tag>`, which is faster.
package struct ClassWriter {
  /// The access level of the classes.
  package var access: String

  package init(access: String = "public") {
    self.access = access
  }

  private var keyword: String { access == "internal" ? "" : access + " " }

  /// The declaration of the class.
  func writeClass(_ entity: EntityDeclaration, into code: inout SwiftCode) {
    code.block("nonisolated \(keyword)class \(entity.className): \(entity.superclassName)") { _ in }
  }

  /// The extension with the properties.
  func writeProperties(_ entity: EntityDeclaration, into code: inout SwiftCode) {
    let accessors = "EntityAccessors_\(entity.className)"
    if !entity.properties.isEmpty {
      code.block("private enum \(accessors)") { code in
        for property in entity.properties { writeAccessor(to: property, into: &code) }
      }
      code.line()
    }
    code.block("extension \(entity.className)") { code in
      code.block(
        "\(keyword)nonisolated class func fetchRequest() -> NSFetchRequest<\(entity.className)>"
      ) {
        $0.line(
          "NSFetchRequest<\(entity.className)>(entityName: \(SwiftCode.literal(entity.name)))"
        )
      }
      for property in entity.properties {
        code.line()
        write(property, accessors, into: &code)
      }
    }
    for property in entity.properties {
      guard case .toMany(let element, let isOrdered) = property.kind else { continue }
      code.line()
      code.line("// MARK: Generated accessors for \(property.name)")
      code.line()
      code.block("extension \(entity.className)") { code in
        writeMembers(property, element, isOrdered, accessors, into: &code)
      }
    }
    // A subclass inherits the conformance to `Identifiable`.
    if entity.superclassName == "NSManagedObject" {
      code.line()
      code.line("extension \(entity.className): Identifiable {}")
    }
  }

  // MARK: Properties

  private func writeAccessor(to property: PropertyDeclaration, into code: inout SwiftCode) {
    let key = SwiftCode.literal(property.name)
    let type = property.kind == .interval ? "Date?" : property.type
    code.line(
      "nonisolated static let \(SwiftCode.name(property.name)) = \(property.accessorType)<\(type)>(\(key))"
    )
    guard case .toMany(let element, let isOrdered) = property.kind else { return }
    if !isOrdered {
      code.line(
        "nonisolated static let typed_\(property.name) = ManagedProperty<Set<\(element)>>(\(key))"
      )
    }
    code.line(
      "nonisolated static let members_\(property.name) = ManagedToMany<\(element)>(\(key))"
    )
  }

  private func write(
    _ property: PropertyDeclaration,
    _ accessors: String,
    into code: inout SwiftCode
  ) {
    let value = "self[\(accessors).\(SwiftCode.name(property.name))]"
    let declaration =
      "\(keyword)nonisolated var \(SwiftCode.name(property.name)): \(property.type)"
    switch property.kind {
    case .fetched:
      code.block(declaration) { $0.line(value) }
    case .interval:
      code.block(declaration) { code in
        code.line("get { \(value)?.timeIntervalSinceReferenceDate ?? 0 }")
        code.line("set { \(value) = Date(timeIntervalSinceReferenceDate: newValue) }")
      }
    case .attribute, .toOne, .toMany:
      code.block(declaration) { code in
        code.line("get { \(value) }")
        code.line("set { \(value) = newValue }")
      }
    }
  }

  // MARK: To-many

  private func writeMembers(
    _ property: PropertyDeclaration,
    _ element: String,
    _ isOrdered: Bool,
    _ accessors: String,
    into code: inout SwiftCode
  ) {
    let suffix = Self.capitalized(property.name)
    let members = "self[\(accessors).members_\(property.name)]"
    func function(_ signature: String, _ call: String) {
      code.line("\(keyword)nonisolated func \(signature) { \(members).\(call) }")
    }
    if isOrdered {
      code.line("/// The members in their order, with their type.")
      code.line("\(keyword)nonisolated var typed\(suffix): [\(element)] { \(members).array }")
      code.line()
      function("insertInto\(suffix)(_ value: \(element), at idx: Int)", "insert(value, at: idx)")
      function("removeFrom\(suffix)(at idx: Int)", "remove(at: idx)")
      function(
        "insertInto\(suffix)(_ values: [\(element)], at indexes: NSIndexSet)",
        "insert(values, at: indexes)"
      )
      function("removeFrom\(suffix)(at indexes: NSIndexSet)", "remove(at: indexes)")
      function(
        "replace\(suffix)(at idx: Int, with value: \(element))",
        "replace(at: idx, with: value)"
      )
      function(
        "replace\(suffix)(at indexes: NSIndexSet, with values: [\(element)])",
        "replace(at: indexes, with: values)"
      )
    } else {
      let typed = "self[\(accessors).typed_\(property.name)]"
      code.line("/// The members with their type: the fast path.")
      code.block("\(keyword)nonisolated var typed\(suffix): Set<\(element)>") { code in
        code.line("get { \(typed) }")
        code.line("set { \(typed) = newValue }")
      }
      code.line()
    }
    let collection = isOrdered ? "NSOrderedSet" : "NSSet"
    function("addTo\(suffix)(_ value: \(element))", "add(value)")
    function("removeFrom\(suffix)(_ value: \(element))", "remove(value)")
    function("addTo\(suffix)(_ values: \(collection))", "add(values)")
    function("removeFrom\(suffix)(_ values: \(collection))", "remove(values)")
  }

  static func capitalized(_ name: String) -> String {
    name.prefix(1).uppercased() + name.dropFirst()
  }
}
