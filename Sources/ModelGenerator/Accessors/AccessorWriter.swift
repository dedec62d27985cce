/// Writes the accessors that `@NSManaged` members lack on this platform.
///
/// The compiler leaves the symbols of such members undefined. Methods with exactly these symbols,
/// in the same module, define them. They are `dynamic`, as `@NSManaged` is: otherwise release
/// builds of a library and an app stop with a mismatch. Setters consume their value: otherwise it
/// leaks.
struct AccessorWriter {
  let classes: [ManagedClass]

  func write(into code: inout SwiftCode, errors: inout [SourceDiagnostic]) {
    for type in classes where !type.variables.isEmpty || !type.methods.isEmpty {
      let accessors = "Accessors_" + type.label
      var calls: [(ManagedMethod, RelationshipCall)] = []
      for method in type.methods {
        if let call = RelationshipCall(method, in: type) {
          calls.append((method, call))
        } else {
          errors.append(
            method.place.error(
              "no accessor can be generated for the method '\(method.name)'; known are addTo…, "
                + "removeFrom…, insertInto… and replace… of a to-many relationship, with the "
                + "parameters that Xcode writes"
            )
          )
        }
      }
      code.line()
      code.conditional(type.conditions) { code in
        writeAccessors(accessors, of: type, calls.map(\.1), into: &code)
        code.line()
        // Another file cannot name a private class; its superclass has the same layout.
        code.block("extension \(type.type.text)") { code in
          for variable in type.variables { write(variable, of: type, accessors, into: &code) }
          for (index, call) in calls.enumerated() {
            write(call.0, call.1, index, of: type, accessors, into: &code)
          }
        }
      }
    }
  }

  // MARK: Accessor objects

  private func writeAccessors(
    _ name: String,
    of type: ManagedClass,
    _ calls: [RelationshipCall],
    into code: inout SwiftCode
  ) {
    code.block("private enum \(name)") { code in
      for variable in type.variables {
        code.conditional(variable.conditions) { code in
          code.line(
            "nonisolated static let \(variable.spelling) = \(accessor(to: variable, of: type))"
          )
        }
      }
      for call in Set(calls.map(\.accessor)).sorted(by: { $0.name < $1.name }) {
        code.line(
          "nonisolated static let \(call.name) = "
            + "ManagedToMany<\(call.element)>(\(SwiftCode.literal(call.relationship)))"
        )
      }
    }
  }

  private func accessor(to variable: ManagedVariable, of type: ManagedClass) -> String {
    if let key = primitiveKey(variable, of: type) {
      return "ManagedPrimitiveProperty<\(variable.type.text)>(\(SwiftCode.literal(key)))"
    }
    return
      "ManagedAccessor.property(\(SwiftCode.literal(variable.name)), of: (\(variable.type.text)).self)"
  }

  /// The attribute's name for a primitive property: "title" for `primitiveTitle`.
  private func primitiveKey(_ variable: ManagedVariable, of type: ManagedClass) -> String? {
    let suffix = variable.name.dropFirst("primitive".count)
    guard variable.name.hasPrefix("primitive"), let first = suffix.first, first.isUppercase else {
      return nil
    }
    let properties = type.visibleProperties.union(type.variables.map(\.name))
    return RelationshipCall.key(suffix, among: properties)
  }

  // MARK: Members

  private func write(
    _ variable: ManagedVariable,
    of type: ManagedClass,
    _ accessors: String,
    into code: inout SwiftCode
  ) {
    let name = MemberName(variable.name, fileDiscriminator: variable.fileDiscriminator)
    let getter = SymbolMangler.getter(of: name, type: variable.type, in: type.type)
    let setter = SymbolMangler.setter(of: name, type: variable.type, in: type.type)
    let declaration = "\(access(variable.access, in: type))nonisolated dynamic final func"
    let property = "self[\(accessors).\(variable.spelling)]"
    code.conditional(variable.conditions) { code in
      code.line("@_silgen_name(\(SwiftCode.literal(getter)))")
      code.block(
        "\(declaration) \(function("get", in: type))_\(variable.name)() -> \(variable.type.text)"
      ) {
        $0.line(property)
      }
      code.line("@_silgen_name(\(SwiftCode.literal(setter)))")
      code.block(
        "\(declaration) \(function("set", in: type))_\(variable.name)(_ value: consuming \(variable.type.text))"
      ) {
        $0.line("\(property) = value")
      }
    }
  }

  private func write(
    _ method: ManagedMethod,
    _ call: RelationshipCall,
    _ index: Int,
    of type: ManagedClass,
    _ accessors: String,
    into code: inout SwiftCode
  ) {
    let symbol = SymbolMangler.method(
      MemberName(method.name, fileDiscriminator: method.fileDiscriminator),
      parameters: method.parameters,
      result: method.result,
      in: type.type
    )
    let parameters = method.parameters.enumerated().map {
      "_ p\($0.offset): \($0.element.type.text)"
    }
    code.conditional(method.conditions) { code in
      code.line("@_silgen_name(\(SwiftCode.literal(symbol)))")
      code.block(
        "\(access(method.access, in: type))nonisolated dynamic final func "
          + "\(function("call", in: type))_\(index)_\(method.name)(\(parameters.joined(separator: ", ")))"
      ) {
        $0.line("self[\(accessors).\(call.accessor.name)].\(call.call)")
      }
    }
  }

  /// The beginning of an accessor's name; those of private classes share an extension with each other.
  private func function(_ kind: String, in type: ManagedClass) -> String {
    "_managed_\(kind)" + (type.type.isHidden ? "_\(type.label)" : "")
  }

  /// Limits a member's access to that of its class, since the compiler warns about a more visible
  /// member.
  private func access(_ access: AccessLevel, in type: ManagedClass) -> String {
    min(access, type.access).keyword
  }
}
