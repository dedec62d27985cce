import Foundation

/// One object of a keyed archive, with access to its fields.
struct ArchivedObject: Hashable {
  private let archive: KeyedArchive
  /// The object's identity within its archive.
  let index: Int

  init(archive: KeyedArchive, index: Int) {
    self.archive = archive
    self.index = index
  }

  static func == (left: ArchivedObject, right: ArchivedObject) -> Bool {
    left.index == right.index
  }

  func hash(into hasher: inout Hasher) {
    hasher.combine(index)
  }

  /// Counts a visited object; false if there were too many.
  func visit() -> Bool { archive.visit() }

  var node: BinaryPropertyList.Node { archive.node(index) }

  /// The name of the archived object's class; nil for plain values.
  var className: String? {
    guard let type = object("$class") else { return nil }
    return type.plainString("$classname")
  }

  /// The object of a key; nil if it is absent or `$null`.
  func object(_ key: String) -> ArchivedObject? {
    guard let value = archive.entries(index)[key],
      let target = archive.resolve(value)
    else { return nil }
    return ArchivedObject(archive: archive, index: target)
  }

  func boolean(_ key: String) -> Bool {
    switch object(key)?.node {
    case .boolean(let value): value
    case .integer(let value): value != 0
    default: false
    }
  }

  func integer(_ key: String) -> Int? {
    switch object(key)?.node {
    case .integer(let value): Int(exactly: value)
    case .real(let value): Int(exactly: value.rounded())
    case .boolean(let value): value ? 1 : 0
    default: nil
    }
  }

  func real(_ key: String) -> Double? {
    switch object(key)?.node {
    case .integer(let value): Double(value)
    case .real(let value), .date(let value): value
    default: nil
    }
  }

  func string(_ key: String) -> String? { object(key)?.string }

  func data(_ key: String) -> Data? { object(key)?.data }

  private func plainString(_ key: String) -> String? {
    guard let value = archive.entries(index)[key],
      case .string(let text) = archive.node(value)
    else { return nil }
    return text
  }

  var isNull: Bool {
    switch node {
    case .null: true
    case .string(let text): text == "$null"
    default: className == "NSNull"
    }
  }

  /// The object as text; strings are archived plain or as an `NSMutableString`.
  var string: String? {
    if case .string(let text) = node { return text }
    guard let inner = object("NS.string") else { return nil }
    if case .string(let text) = inner.node { return text }
    return nil
  }

  var data: Data? {
    if case .data(let bytes) = node { return bytes }
    if let inner = object("NS.data"), case .data(let bytes) = inner.node { return bytes }
    if let inner = object("NS.bytes"), case .data(let bytes) = inner.node { return bytes }
    return nil
  }

  var integerValue: Int64? {
    if case .integer(let value) = node { return value }
    return nil
  }

  /// Whether an archived object has a value for a key.
  func contains(_ key: String) -> Bool { archive.entries(index)[key] != nil }

  /// The members of an array or a set.
  var elements: [ArchivedObject] {
    list("NS.objects")
  }

  /// The keys and values of a dictionary of either kind, in archived order.
  var pairs: [(key: ArchivedObject, value: ArchivedObject)] {
    if className == "NSKnownKeysDictionary1" {
      let keys = object("searchMapping")?.object("keys")?.elements ?? []
      let values = object("values")?.elements ?? []
      return zip(keys, values).map { ($0, $1) }
    }
    return zip(list("NS.keys"), list("NS.objects")).map { ($0, $1) }
  }

  /// The members under one key, or where it is absent under a numbered key for each.
  func list(_ key: String, each prefix: String) -> [ArchivedObject] {
    guard !contains(key) else { return list(key) }
    var members: [ArchivedObject] = []
    while let member = object("\(prefix)\(members.count)") { members.append(member) }
    return members
  }

  private func list(_ key: String) -> [ArchivedObject] {
    guard let value = archive.entries(index)[key],
      case .array(let members) = archive.node(value)
    else { return [] }
    return members.map { member in
      // A nil member keeps its position: keys and values are matched by position.
      ArchivedObject(archive: archive, index: archive.resolve(member) ?? member)
    }
  }

  /// The object as a Foundation value: text, numbers, dates, bytes and their collections.
  func foundationValue(depth: Int = 0) -> Any? {
    guard depth < KeyedArchive.depthLimit, visit() else { return nil }
    switch node {
    case .boolean(let value): return NSNumber(value: value)
    case .integer(let value): return NSNumber(value: value)
    case .unsigned(let value): return NSNumber(value: value)
    case .real(let value): return NSNumber(value: value)
    case .date(let value): return Date(timeIntervalSinceReferenceDate: value)
    case .data(let value): return value
    case .string(let value): return value == "$null" ? nil : value
    case .null, .reference, .array: return nil
    case .dictionary: return objectValue(depth: depth)
    }
  }

  private func objectValue(depth: Int) -> Any? {
    switch className ?? "" {
    case "NSString", "NSMutableString": return string
    case "NSData", "NSMutableData": return data
    case "NSDate": return real("NS.time").map { Date(timeIntervalSinceReferenceDate: $0) }
    case "NSUUID":
      guard let bytes = data("NS.uuidbytes"), bytes.count == 16 else { return nil }
      return bytes.withUnsafeBytes { UUID(uuid: $0.loadUnaligned(as: uuid_t.self)) }
    case "NSURL":
      return string("NS.relative").flatMap { relative in
        URL(
          string: relative,
          relativeTo: object("NS.base")?.foundationValue(depth: depth + 1) as? URL
        )
      }
    case "NSDecimalNumber", "NSDecimalNumberPlaceholder": return decimal
    case "NSNumber": return real("NS.dblval").map { NSNumber(value: $0) }
    case "NSArray", "NSMutableArray", "NSSet", "NSMutableSet", "NSOrderedSet":
      return elements.compactMap { $0.foundationValue(depth: depth + 1) }
    case "NSDictionary", "NSMutableDictionary", "NSKnownKeysDictionary1":
      var result: [AnyHashable: Any] = [:]
      for (key, value) in pairs {
        guard let key = key.foundationValue(depth: depth + 1) as? AnyHashable else { continue }
        result[key] = value.foundationValue(depth: depth + 1)
      }
      return result
    default: return nil
    }
  }

  /// The mantissa's words in the byte order of the archive, times a power of ten.
  var decimal: NSDecimalNumber? {
    guard let mantissa = data("NS.mantissa"), mantissa.count <= 16,
      let length = integer("NS.length"), (0...8).contains(length),
      let exponent = integer("NS.exponent"), (-128...127).contains(exponent)
    else { return nil }
    if length == 0 { return boolean("NS.negative") ? .notANumber : .zero }
    let bytes = [UInt8](mantissa)
    let isLittle = integer("NS.mantissa.bo") != 2
    var value = Decimal(0)
    for word in (0..<min(length, bytes.count / 2)).reversed() {
      let low = Int(bytes[word * 2 + (isLittle ? 0 : 1)])
      let high = Int(bytes[word * 2 + (isLittle ? 1 : 0)])
      value = value * 65536 + Decimal(high << 8 | low)
    }
    let sign: FloatingPointSign = boolean("NS.negative") ? .minus : .plus
    return NSDecimalNumber(
      decimal: Decimal(sign: sign, exponent: exponent, significand: value)
    )
  }
}
