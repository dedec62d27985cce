/// The types of the standard library, Foundation and Core Data that properties can have.
enum StandardTypes {
  /// The standard library's types that have a one-letter mangling.
  static let letters: [String: Character] = [
    "Array": "a", "Bool": "b", "Dictionary": "D", "Double": "d", "Float": "f", "Set": "h",
    "Int": "i", "Character": "J", "ClosedRange": "N", "Range": "n", "String": "S",
    "Substring": "s", "UInt": "u",
  ]

  /// Type aliases and their types.
  static let aliases: [String: String] = [
    "TimeInterval": "Double", "Float32": "Float", "Float64": "Double",
  ]

  /// The type of a name that the module itself does not declare.
  static func type(named name: String, in module: String? = nil) -> NominalType? {
    guard let found = types[aliases[name] ?? name] else { return nil }
    guard let module, module != found.module else { return found }
    // Foundation re-exports its own modules, and Watershed's modules re-export Foundation.
    switch module {
    case "Swift": return nil
    case "Foundation": return found.module.hasPrefix("Foundation") ? found : nil
    default: return found.module == "Swift" ? nil : found
    }
  }

  /// The number of generic arguments of a type.
  static let argumentCounts: [String: Int] = [
    "Array": 1, "ClosedRange": 1, "Dictionary": 2, "Measurement": 1, "Optional": 1, "Range": 1,
    "Set": 1,
  ]

  private static let types: [String: NominalType] = {
    var types: [String: NominalType] = [:]
    func add(_ module: String, _ kind: NominalType.Kind, _ names: [String]) {
      for name in names { types[name] = NominalType(module, name, kind) }
    }
    add("Swift", .structure, Array(letters.keys))
    add(
      "Swift",
      .structure,
      [
        "AnyHashable", "Float16", "Int16", "Int32", "Int64", "Int8", "UInt16", "UInt32", "UInt64",
        "UInt8",
      ]
    )
    add(
      "FoundationEssentials",
      .structure,
      [
        "AttributedString", "Calendar", "Data", "Date", "DateComponents", "DateInterval", "Decimal",
        "IndexPath", "Locale", "TimeZone", "URL", "UUID",
      ]
    )
    add(
      "Foundation",
      .structure,
      [
        "CGFloat", "CGPoint", "CGRect", "CGSize", "IndexSet", "Measurement",
        "PersonNameComponents",
      ]
    )
    add(
      "Foundation",
      .class,
      [
        "NSArray", "NSAttributedString", "NSData", "NSDate", "NSDecimalNumber", "NSDictionary",
        "NSIndexSet", "NSMutableArray", "NSMutableDictionary", "NSMutableOrderedSet",
        "NSMutableSet", "NSNumber", "NSObject", "NSOrderedSet", "NSSet", "NSString", "NSURL",
        "NSUUID", "NSValue",
      ]
    )
    add("OpenCoreData", .class, ["NSManagedObject", "NSManagedObjectID"])
    return types
  }()
}
