import Effects
import Foundation

/// The source of a derived attribute's value.
enum Derivation: Hashable {
  /// `@count` of a to-many.
  case count(relationship: String)
  /// `@sum` of an attribute over a to-many.
  case sum(relationship: String, attribute: String)
  /// An attribute of the object itself, as it is or through a function.
  case own(attribute: String, Transform?)
  /// An attribute at the other end of one or more to-ones, as it is or through a function.
  case copy(relationships: [String], attribute: String, Transform?)
  /// The time of the save.
  case now

  /// A function of one text.
  enum Transform: String {
    case canonical, uppercase, lowercase

    func apply(_ text: String) -> String {
      switch self {
      case .canonical: Derivation.canonical(text)
      case .uppercase: text.uppercased()
      case .lowercase: text.lowercased()
      }
    }
  }

  /// Reads the forms that the model editor and the compiled models have.
  init?(format: String) {
    let text = format.filter { !$0.isWhitespace }
    if text == "now()" {
      self = .now
      return
    }
    if let (name, argument) = Self.call(in: text) {
      switch name {
      case "now": self = .now
      case "count": self = .count(relationship: argument)
      case "sum":
        let parts = argument.split(separator: ".").map(String.init)
        guard parts.count == 2 else { return nil }
        self = .sum(relationship: parts[0], attribute: parts[1])
      default:
        guard let transform = Transform(rawValue: name) else { return nil }
        self.init(path: argument, transform)
      }
      return
    }
    let parts = text.split(separator: ".").map(String.init)
    switch parts.count {
    case 2 where parts[1] == "@count": self = .count(relationship: parts[0])
    case 3 where parts[2] == "@sum": self = .sum(relationship: parts[0], attribute: parts[1])
    case 3 where parts[1] == "@sum": self = .sum(relationship: parts[0], attribute: parts[2])
    default: self.init(path: text, nil)
    }
  }

  /// A key path over to-ones, if over any.
  private init?(path: String, _ transform: Transform?) {
    var parts = path.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
    guard let attribute = parts.popLast(), !attribute.isEmpty,
      !parts.contains(where: \.isEmpty), !path.contains("@"), !path.contains("(")
    else { return nil }
    self =
      parts.isEmpty
      ? .own(attribute: attribute, transform)
      : .copy(relationships: parts, attribute: attribute, transform)
  }

  /// `name:(argument)` or `name(argument)`.
  private static func call(in text: String) -> (String, String)? {
    guard text.hasSuffix(")"), let open = text.firstIndex(of: "(") else { return nil }
    let name = text[..<open].drop { $0 == ":" }
    let argument = text[text.index(after: open)...].dropLast()
    return (String(name.filter { $0 != ":" }), String(argument))
  }

  /// Whether the value follows from the object's own values, so that a save computes it.
  var isOwn: Bool {
    switch self {
    case .own, .now: true
    case .count, .sum, .copy: false
    }
  }

  /// The text without case, accents and width, for sorting without regard to them.
  static func canonical(_ text: String) -> String {
    text.foldedInPieces([.caseInsensitive, .diacriticInsensitive, .widthInsensitive])
  }
}

/// The derived attributes of an entity that a save computes from the row itself.
struct OwnDerivations {
  private let entries: [(target: AttributeSlot, source: Int?, derivation: Derivation)]

  init(layout: EntityLayout) {
    entries = layout.attributes.compactMap { slot in
      guard let attribute = slot.description as? NSDerivedAttributeDescription,
        let derivation = attribute.derivationFormat.flatMap(Derivation.init(format:)),
        derivation.isOwn
      else { return nil }
      guard case .own(let name, _) = derivation else { return (slot, nil, derivation) }
      guard case .attribute(let source) = layout.slot(named: name) else { return nil }
      return (slot, source, derivation)
    }
  }

  var isEmpty: Bool { entries.isEmpty }
  var targets: [Int] { entries.map(\.target.index) }

  func apply(to values: inout [RowValue], now: Double) {
    for entry in entries {
      let value: RowValue =
        switch (entry.derivation, entry.source.map { values[$0] }) {
        case (.now, _): .date(now)
        case (.own(_, let transform?), .string(let text)): .string(transform.apply(text))
        case (.own(_, nil), let value?): value
        default: .null
        }
      values[entry.target.index] = Self.converted(value, to: entry.target.type)
    }
  }

  /// A number or a date in the form that an attribute of the type has in a row.
  ///
  /// The row is in the cache until it is read from the file, whose columns convert numbers themselves.
  private static func converted(_ value: RowValue, to type: NSAttributeType) -> RowValue {
    let column = ColumnClass(type)
    switch (value, column) {
    case (.integer(let number), .floating): return floating(Double(number), type)
    case (.integer(let number), .decimal): return .decimal(RowDecimal(Decimal(number)))
    case (.double(let number), .integer), (.date(let number), .integer): return whole(number)
    case (.double(let number), .floating), (.date(let number), .floating):
      return floating(number, type)
    case (.double(let number), .decimal), (.date(let number), .decimal):
      return .decimal(RowDecimal(Decimal(nearest: number)))
    case (.decimal(let number), .integer):
      return whole((number.value as NSDecimalNumber).doubleValue)
    case (.decimal(let number), .floating):
      return floating((number.value as NSDecimalNumber).doubleValue, type)
    default: return value
    }
  }

  private static func whole(_ number: Double) -> RowValue {
    Int64(exactly: number.rounded(.towardZero)).map(RowValue.integer) ?? .null
  }

  private static func floating(_ number: Double, _ type: NSAttributeType) -> RowValue {
    type == .dateAttributeType ? .date(number) : .double(number)
  }
}
