import Foundation

/// Turns Swift's values into the Foundation objects that archives have.
struct ArchivableValues {
  /// The classes that may be archived; nil for any.
  private let classes: [AnyClass]?
  /// Whether all objects so far are values that ``ArchivedValueReader`` reads, of classes that any
  /// transformer allows.
  private(set) var isOfValues: Bool
  /// The levels of the values around the present one.
  private var depth = 0

  /// The most levels: deeper values could not be read again.
  ///
  /// A list that contains itself is not noticed: Foundation on Linux overflows the stack when one of
  /// its members is asked for.
  private static let depthLimit = KeyedArchive.depthLimit - 28

  init(classes: [AnyClass]?) {
    self.classes = classes
    let allowed = Set(classes?.map(ObjectIdentifier.init) ?? [])
    isOfValues =
      classes == nil
      || NSSecureUnarchiveFromDataTransformer.allowedTopLevelClasses.allSatisfy {
        allowed.contains(ObjectIdentifier($0))
      }
  }

  /// The object of a value; nil where it cannot be archived.
  mutating func object(_ value: Any) -> NSObject? {
    guard depth < Self.depthLimit else { return nil }
    depth += 1
    defer { depth -= 1 }
    return switch value {
    case let value as String: NSString(string: value)
    case let value as Date:
      NSDate(timeIntervalSinceReferenceDate: value.timeIntervalSinceReferenceDate)
    case let value as Data: NSData(data: value)
    case let value as UUID: NSUUID(uuidString: value.uuidString)
    case let value as URL: NSURL(string: value.absoluteString)
    // A decimal number is a number too.
    case let value as NSDecimalNumber: ArchivedDecimal(value.decimalValue)
    case let value as NSNumber: value
    case let value as Bool: NSNumber(value: value)
    case let value as Int: NSNumber(value: value)
    case let value as Double: NSNumber(value: value)
    case let value as NSArray: objects(value.map { $0 }).map(NSArray.init(array:))
    case let value as [Any]: objects(value).map(NSArray.init(array:))
    case let value as [String: Any]: dictionary(value.map { ($0, $1) })
    case let value as NSDictionary: dictionary(value.map { ($0, $1) })
    case let value as Set<AnyHashable>: hashed(Array(value)).map(NSSet.init(array:))
    case let value as NSSet: hashed(value.map { $0 }).map(NSSet.init(array:))
    case let value as NSOrderedSet: orderedSet(value)
    case let value as NSNull: value
    case let value as NSObject: other(value)
    default: nil
    }
  }

  private mutating func objects(_ values: [Any]) -> [NSObject]? {
    var objects: [NSObject] = []
    for value in values {
      guard let object = object(value) else { return nil }
      objects.append(object)
    }
    return objects
  }

  /// Objects for a set or for keys: Foundation on Linux cannot hash a decimal number.
  private mutating func hashed(_ values: [Any]) -> [NSObject]? {
    objects(values).flatMap { $0.contains { $0 is ArchivedDecimal } ? nil : $0 }
  }

  private mutating func dictionary(_ pairs: [(key: Any, value: Any)]) -> NSDictionary? {
    guard let keys = hashed(pairs.map(\.key)), let values = objects(pairs.map(\.value)) else {
      return nil
    }
    return NSDictionary(objects: values, forKeys: keys)
  }

  private mutating func orderedSet(_ set: NSOrderedSet) -> NSOrderedSet? {
    // The class is not among those that every transformer allows.
    isOfValues = isOfValues && classes == nil
    return hashed(set.map { $0 }).map(NSOrderedSet.init(array:))
  }

  /// An object of a class with a coding of its own.
  private mutating func other(_ object: NSObject) -> NSObject? {
    isOfValues = false
    guard object is any NSCoding else { return nil }
    guard classes == nil || TransformableArchive.supportsSecureCoding(type(of: object)) else {
      return nil
    }
    return object
  }
}

/// A decimal number as it is archived: Foundation on Linux cannot archive `NSDecimalNumber`, since
/// its hash never returns.
private final class ArchivedDecimal: NSObject, NSCoding {
  private let value: Decimal

  init(_ value: Decimal) {
    self.value = value
  }

  /// Never called: archives name `NSDecimalNumber`.
  init?(coder: NSCoder) { nil }

  override var classForKeyedArchiver: AnyClass? { NSDecimalNumber.self }

  func encode(with coder: NSCoder) {
    coder.encode(Int32(value.isNaN ? 0 : value.exponent), forKey: "NS.exponent")
    coder.encode(Int32(value.mantissaWords.count), forKey: "NS.length")
    coder.encode(value.isNaN || value.sign == .minus, forKey: "NS.negative")
    coder.encode(true, forKey: "NS.compact")
    // The words are little-endian.
    coder.encode(Int32(1), forKey: "NS.mantissa.bo")
    value.mantissaBytes.withUnsafeBytes {
      let bytes = $0.bindMemory(to: UInt8.self)
      coder.encodeBytes(bytes.baseAddress, length: bytes.count, forKey: "NS.mantissa")
    }
  }
}
