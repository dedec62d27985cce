/// Mangles the symbols that the compiler expects for accessors and methods.
///
/// The rules are those of Swift's ABI (swift.org, Mangling.rst), as far as managed objects need
/// them: members of classes in one module, with the types of `SwiftType`.
struct SymbolMangler {
  private var text = "$s"
  private var words = IdentifierWords()
  private var known: [Known: Int] = [:]
  private var last: LastSubstitution?

  /// A substitution candidate: it is written once and referenced afterwards.
  private enum Known: Hashable {
    case identifier(String)
    case type(SwiftType)
  }

  /// A substitution at the end of the text, with which the next one may be merged.
  private struct LastSubstitution {
    /// The position of its count or its letter.
    var start: Int
    var count: Int
    var letter: Character
    var isStandard: Bool
    /// The position after it.
    var end: Int
  }

  private init() {}

  // MARK: Members

  static func getter(of name: MemberName, type: SwiftType, in owner: NominalType) -> String {
    accessor("g", of: name, type: type, in: owner)
  }

  static func setter(of name: MemberName, type: SwiftType, in owner: NominalType) -> String {
    accessor("s", of: name, type: type, in: owner)
  }

  private static func accessor(
    _ kind: String,
    of name: MemberName,
    type: SwiftType,
    in owner: NominalType
  ) -> String {
    var mangler = SymbolMangler()
    mangler.append(owner)
    mangler.append(name)
    mangler.append(type)
    return mangler.text + "v" + kind
  }

  static func method(
    _ name: MemberName,
    parameters: [(label: String?, type: SwiftType)],
    result: SwiftType?,
    in owner: NominalType
  ) -> String {
    var mangler = SymbolMangler()
    mangler.append(owner)
    mangler.append(name)
    if parameters.allSatisfy({ $0.label == nil }) {
      mangler.append("y")
    } else {
      for parameter in parameters {
        if let label = parameter.label {
          mangler.append(identifier: label)
        } else {
          mangler.append("_")
        }
      }
    }
    if let result { mangler.append(result) } else { mangler.append("y") }
    if let only = parameters.first, parameters.count == 1, only.label == nil {
      mangler.append(only.type)
    } else if parameters.isEmpty {
      mangler.append("y")
    } else {
      for (index, parameter) in parameters.enumerated() {
        mangler.append(parameter.type)
        if index == 0 { mangler.append("_") }
      }
      mangler.append("t")
    }
    return mangler.text + "F"
  }

  // MARK: Pieces

  private mutating func append(_ operators: String) {
    text += operators
  }

  private mutating func append(_ name: MemberName) {
    append(identifier: name.name)
    if let discriminator = name.fileDiscriminator {
      append(identifier: discriminator)
      append("LL")
    }
  }

  private mutating func append(identifier: String) {
    if appendSubstitution(for: .identifier(identifier)) { return }
    text += words.mangle(identifier)
    remember(.identifier(identifier))
  }

  private mutating func append(_ type: SwiftType) {
    switch type {
    case .any: append("yp")
    case .anyObject: append("yXl")
    case .nominal(let nominal): append(nominal)
    case .generic(let nominal, let arguments):
      if appendSubstitution(for: .type(type)) { return }
      append(nominal)
      append("y")
      for argument in arguments { append(argument) }
      append("G")
      remember(.type(type))
    case .optional(let wrapped):
      if appendSubstitution(for: .type(type)) { return }
      append(wrapped)
      append("Sg")
      remember(.type(type))
    }
  }

  private mutating func append(_ nominal: NominalType) {
    if nominal.module == "Swift", nominal.path.count == 1,
      let letter = StandardTypes.letters[nominal.name]
    {
      appendMerged(letter, isStandard: true)
      return
    }
    if appendSubstitution(for: .type(.nominal(nominal))) { return }
    guard let level = nominal.path.last else { return }
    if nominal.path.count > 1 {
      append(NominalType(module: nominal.module, path: nominal.path.dropLast()))
    } else if nominal.module == "Swift" {
      append("s")
    } else {
      append(identifier: nominal.module)
    }
    append(MemberName(level.name, fileDiscriminator: level.fileDiscriminator))
    append(String(level.kind.rawValue))
    remember(.type(.nominal(nominal)))
  }

  // MARK: Substitutions

  private mutating func remember(_ thing: Known) {
    known[thing] = known.count
  }

  private mutating func appendSubstitution(for thing: Known) -> Bool {
    guard let number = known[thing] else { return false }
    if number < 26 {
      appendMerged(Self.letter(number, from: "A"), isStandard: false)
    } else {
      append(number == 26 ? "A_" : "A\(number - 27)_")
    }
    return true
  }

  private static func letter(_ number: Int, from first: Unicode.Scalar) -> Character {
    Character(Unicode.Scalar(UInt8(first.value) + UInt8(number)))
  }

  /// Merges adjacent substitutions: "AB" and "AC" to "AbC", "AB" and "AB" to "A2B", "Si" and "Si"
  /// to "S2i".
  private mutating func appendMerged(_ letter: Character, isStandard: Bool) {
    if var merged = last, merged.end == text.count, merged.isStandard == isStandard {
      if merged.letter == letter {
        merged.count += 1
        text = String(text.prefix(merged.start)) + "\(merged.count)" + String(letter)
        merged.end = text.count
        last = merged
        return
      }
      if !isStandard {
        text = String(text.dropLast()) + merged.letter.lowercased()
        last = LastSubstitution(
          start: text.count,
          count: 1,
          letter: letter,
          isStandard: false,
          end: text.count + 1
        )
        text.append(letter)
        return
      }
    }
    text += isStandard ? "S" : "A"
    last = LastSubstitution(
      start: text.count,
      count: 1,
      letter: letter,
      isStandard: isStandard,
      end: text.count + 1
    )
    text.append(letter)
  }
}

/// The name of a member or a type in symbols.
struct MemberName: Hashable {
  var name: String
  /// The private discriminator, which distinguishes private declarations of two files.
  var fileDiscriminator: String?

  init(_ name: String, fileDiscriminator: String? = nil) {
    self.name = name
    self.fileDiscriminator = fileDiscriminator
  }
}
