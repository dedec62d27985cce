import Foundation

/// Builds the objects of a keyed archive whose classes are Foundation's values and collections, as
/// Apple's platforms and Foundation on Linux write them.
///
/// Damaged archives, and those nested too deeply, have no object.
struct ArchivedValueReader {
  /// The classes that are read, and what their objects become.
  static let classes: [String: AnyClass] = [
    "NSString": NSString.self, "NSMutableString": NSMutableString.self,
    "NSNumber": NSNumber.self, "NSDecimalNumber": NSDecimalNumber.self,
    "NSDecimalNumberPlaceholder": NSDecimalNumber.self,
    "NSDate": NSDate.self, "NSURL": NSURL.self, "NSUUID": NSUUID.self, "NSNull": NSNull.self,
    "NSData": NSData.self, "NSMutableData": NSMutableData.self,
    "NSArray": NSArray.self, "NSMutableArray": NSMutableArray.self,
    "NSSet": NSSet.self, "NSMutableSet": NSMutableSet.self,
    "NSOrderedSet": NSOrderedSet.self, "NSMutableOrderedSet": NSMutableOrderedSet.self,
    "NSDictionary": NSDictionary.self, "NSMutableDictionary": NSMutableDictionary.self,
    "NSLocale": NSLocale.self,
  ]

  /// The objects that are built, by their place in the archive: several may share one.
  private var built: [ArchivedObject: NSObject] = [:]
  private var depth = 0
  /// Collections may share members, but each names its own: there are not more than the archive has
  /// bytes.
  private var membersLeft: Int
  /// The number of objects that each collection has, with those of its members.
  private var sizes: [ArchivedObject: Int] = [:]
  /// The most objects that a collection has.
  ///
  /// Collections that share members may have more objects than can be counted in any time, and
  /// Foundation visits each of them when it bridges or compares.
  private let sizeLimit: Int

  /// Creates a reader with the limits of an archive of this size.
  init(byteCount: Int) {
    membersLeft = byteCount
    sizeLimit = byteCount + 250_000
  }

  /// The object; nil where it or a part of it is damaged.
  mutating func object(_ archived: ArchivedObject) -> NSObject? {
    if let known = built[archived] { return known }
    // A cycle ends at the limit too.
    guard depth < KeyedArchive.depthLimit else { return nil }
    depth += 1
    defer { depth -= 1 }
    let made = make(archived)
    built[archived] = made
    return made
  }

  private mutating func make(_ archived: ArchivedObject) -> NSObject? {
    switch archived.node {
    case .boolean(let value): NSNumber(value: value)
    case .integer(let value): NSNumber(value: value)
    case .unsigned(let value): NSNumber(value: value)
    case .real(let value): NSNumber(value: value)
    case .date(let value): NSDate(timeIntervalSinceReferenceDate: value)
    case .data(let value): NSData(data: value)
    case .string(let value): NSString(string: value)
    case .null, .reference, .array: nil
    case .dictionary: instance(archived)
    }
  }

  /// An object with a class and fields.
  private mutating func instance(_ archived: ArchivedObject) -> NSObject? {
    switch archived.className {
    case "NSString": archived.string.map(NSString.init(string:))
    case "NSMutableString": archived.string.map(NSMutableString.init(string:))
    case "NSData": archived.data.map(NSData.init(data:))
    case "NSMutableData": archived.data.map { NSMutableData(data: $0) }
    case "NSNumber": number(archived)
    case "NSDecimalNumber", "NSDecimalNumberPlaceholder": archived.decimal
    case "NSDate": archived.real("NS.time").map(NSDate.init(timeIntervalSinceReferenceDate:))
    case "NSURL": url(archived)
    case "NSUUID": identifier(archived)
    case "NSNull": NSNull()
    case "NSLocale": archived.string("NS.identifier").map(NSLocale.init(localeIdentifier:))
    case "NSArray": members(archived).map(NSArray.init(array:))
    case "NSMutableArray": members(archived).map { NSMutableArray(array: $0) }
    case "NSSet": hashed(members(archived)).map(NSSet.init(array:))
    case "NSMutableSet": hashed(members(archived)).map { NSMutableSet(array: $0) }
    case "NSOrderedSet": hashed(members(archived)).map(NSOrderedSet.init(array:))
    case "NSMutableOrderedSet":
      hashed(members(archived)).map { NSMutableOrderedSet(array: $0) }
    case "NSDictionary": pairs(archived).map { NSDictionary(objects: $0.values, forKeys: $0.keys) }
    case "NSMutableDictionary":
      pairs(archived).map { NSMutableDictionary(objects: $0.values, forKeys: $0.keys) }
    default: nil
    }
  }

  // MARK: Values

  private func number(_ archived: ArchivedObject) -> NSNumber? {
    if archived.contains("NS.boolval") { return NSNumber(value: archived.boolean("NS.boolval")) }
    if let value = archived.object("NS.intval")?.integerValue { return NSNumber(value: value) }
    return archived.real("NS.dblval").map(NSNumber.init(value:))
  }

  private mutating func url(_ archived: ArchivedObject) -> NSURL? {
    guard let text = archived.string("NS.relative") else { return nil }
    guard let base = archived.object("NS.base") else { return NSURL(string: text) }
    return (object(base) as? NSURL).flatMap { NSURL(string: text, relativeTo: $0 as URL) }
  }

  private func identifier(_ archived: ArchivedObject) -> NSUUID? {
    guard let bytes = archived.data("NS.uuidbytes"), bytes.count == 16 else { return nil }
    let identifier = bytes.withUnsafeBytes { UUID(uuid: $0.loadUnaligned(as: uuid_t.self)) }
    return NSUUID(uuidString: identifier.uuidString)
  }

  // MARK: Collections

  /// The members of a collection; nil where one of them is damaged.
  private mutating func members(_ archived: ArchivedObject) -> [NSObject]? {
    objects(archived.list("NS.objects", each: "NS.object."), of: archived)
  }

  private mutating func pairs(
    _ archived: ArchivedObject
  ) -> (keys: [NSObject], values: [NSObject])? {
    let list = archived.list("NS.keys", each: "NS.key.")
    guard let keys = hashed(objects(list, of: archived)),
      let values = members(archived), keys.count == values.count
    else { return nil }
    return (keys, values)
  }

  private mutating func objects(
    _ list: [ArchivedObject],
    of collection: ArchivedObject
  ) -> [NSObject]? {
    membersLeft -= list.count
    guard membersLeft >= 0 else { return nil }
    var objects: [NSObject] = []
    objects.reserveCapacity(list.count)
    var size = sizes[collection] ?? 1
    for member in list {
      guard let object = object(member) else { return nil }
      objects.append(object)
      size += sizes[member] ?? 1
      guard size <= sizeLimit else { return nil }
    }
    sizes[collection] = size
    return objects
  }

  /// The members of a set, or keys: Foundation on Linux cannot hash a decimal number.
  private func hashed(_ objects: [NSObject]?) -> [NSObject]? {
    objects.flatMap { $0.contains { $0 is NSDecimalNumber } ? nil : $0 }
  }
}
