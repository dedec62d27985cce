import Foundation

/// A description of an attribute: a property that holds a value.
///
/// ```swift
/// let rating = NSAttributeDescription()
/// rating.name = "rating"
/// rating.type = .integer16
/// rating.isOptional = false
/// rating.defaultValue = 3
/// rating.renamingIdentifier = "stars"  // its name in the version before
/// ```
open class NSAttributeDescription: NSPropertyDescription, @unchecked Sendable {
  /// The kind of value that an attribute holds, as a structure.
  public struct AttributeType: RawRepresentable, Hashable, Sendable {
    /// The type as an enumeration.
    public var rawValue: NSAttributeType

    /// Wraps a type.
    public init(rawValue: NSAttributeType) {
      self.rawValue = rawValue
    }

    /// No type.
    public static let undefined = AttributeType(rawValue: .undefinedAttributeType)
    /// A whole number of 16 bits.
    public static let integer16 = AttributeType(rawValue: .integer16AttributeType)
    /// A whole number of 32 bits.
    public static let integer32 = AttributeType(rawValue: .integer32AttributeType)
    /// A whole number of 64 bits.
    public static let integer64 = AttributeType(rawValue: .integer64AttributeType)
    /// A decimal number.
    public static let decimal = AttributeType(rawValue: .decimalAttributeType)
    /// A floating-point number of 64 bits.
    public static let double = AttributeType(rawValue: .doubleAttributeType)
    /// A floating-point number of 32 bits.
    public static let float = AttributeType(rawValue: .floatAttributeType)
    /// Text.
    public static let string = AttributeType(rawValue: .stringAttributeType)
    /// Yes or no.
    public static let boolean = AttributeType(rawValue: .booleanAttributeType)
    /// A moment in time.
    public static let date = AttributeType(rawValue: .dateAttributeType)
    /// Bytes.
    public static let binaryData = AttributeType(rawValue: .binaryDataAttributeType)
    /// A universally unique identifier.
    public static let uuid = AttributeType(rawValue: .UUIDAttributeType)
    /// A resource identifier.
    public static let uri = AttributeType(rawValue: .URIAttributeType)
    /// Any value that a value transformer turns into bytes.
    public static let transformable = AttributeType(rawValue: .transformableAttributeType)
    /// The identifier of an object.
    public static let objectID = AttributeType(rawValue: .objectIDAttributeType)
    /// A group of attributes.
    public static let composite = AttributeType(rawValue: .compositeAttributeType)
  }

  /// The kind of value that the attribute holds.
  open var attributeType = NSAttributeType.undefinedAttributeType {
    willSet { requireEditable() }
  }
  /// The value that a new object starts with.
  open var defaultValue: Any? { willSet { requireEditable() } }
  /// The name of the transformer that turns a transformable value into bytes; with nil, objects of
  /// any class with a coding are archived.
  ///
  /// Differs from Core Data: a value that Foundation on Linux could not read from its archive
  /// again, such as an `NSAttributedString` or a set of decimal numbers, is refused when its object
  /// is saved. A stored value that this process cannot decode reads as nil and keeps its bytes; a
  /// migration that would have to decode it fails. Where the named transformer is not found, Core
  /// Data archives the value, and here the save is refused.
  open var valueTransformerName: String? { willSet { requireEditable() } }
  /// Whether large values may be kept in files beside the store.
  ///
  /// A fetch does not read these files: a value is mapped into memory and read when it is used.
  /// They are written once, and no other program may shorten them: a process that uses the value
  /// would end.
  open var allowsExternalBinaryDataStorage = false { willSet { requireEditable() } }
  /// Whether a deleted object's value stays in the persistent history.
  open var preservesValueInHistoryOnDeletion = false { willSet { requireEditable() } }
  /// Whether the value is encrypted before it goes to CloudKit.
  open var allowsCloudEncryption = false { willSet { requireEditable() } }
  /// The bounds that the model editor set.
  package var limits = AttributeLimits() { willSet { requireEditable() } }
  /// Whether generated classes use a Swift scalar.
  package var usesScalarValueType = false { willSet { requireEditable() } }
  /// The class name, if the model specifies one.
  package var explicitValueClassName: String? { willSet { requireEditable() } }

  /// The kind of value that the attribute holds, as a structure.
  public var type: AttributeType {
    get { AttributeType(rawValue: attributeType) }
    set { attributeType = newValue.rawValue }
  }

  /// The name of the class of the attribute's values.
  open var attributeValueClassName: String? {
    get { explicitValueClassName ?? attributeType.valueClassName }
    set { explicitValueClassName = newValue }
  }

  open override var versionHash: Data { VersionHash.attribute(self) }

  package override var allValidationRules: [ValidationRule] { limits.rules + validationRules }

  open override func setValidationPredicates(
    _ validationPredicates: [NSPredicate]?,
    withValidationWarnings validationWarnings: [String]?
  ) {
    limits = AttributeLimits()
    super.setValidationPredicates(
      validationPredicates,
      withValidationWarnings: validationWarnings
    )
  }

  override var parts: DescriptionParts {
    let start = (defaultValue as? AnyHashable) ?? AnyHashable("\(defaultValue ?? "")")
    let own: DescriptionParts = [
      "type": attributeType, "default": start,
      "transformer": valueTransformerName, "class": attributeValueClassName,
      "external": allowsExternalBinaryDataStorage, "history": preservesValueInHistoryOnDeletion,
      "encrypted": allowsCloudEncryption,
    ]
    return super.parts.merging(own) { _, own in own }
  }

  override func copyValues(to copy: NSPropertyDescription) {
    super.copyValues(to: copy)
    guard let copy = copy as? NSAttributeDescription else { return }
    copy.attributeType = attributeType
    copy.defaultValue = defaultValue
    copy.valueTransformerName = valueTransformerName
    copy.allowsExternalBinaryDataStorage = allowsExternalBinaryDataStorage
    copy.preservesValueInHistoryOnDeletion = preservesValueInHistoryOnDeletion
    copy.allowsCloudEncryption = allowsCloudEncryption
    copy.limits = limits
    copy.usesScalarValueType = usesScalarValueType
    copy.explicitValueClassName = explicitValueClassName
  }
}

extension NSAttributeType {
  /// The class that Core Data names for values of the type.
  package var valueClassName: String? {
    switch self {
    case .integer16AttributeType, .integer32AttributeType, .integer64AttributeType,
      .doubleAttributeType, .floatAttributeType, .booleanAttributeType:
      "NSNumber"
    case .decimalAttributeType: "NSDecimalNumber"
    case .stringAttributeType: "NSString"
    case .dateAttributeType: "NSDate"
    case .binaryDataAttributeType: "NSData"
    case .UUIDAttributeType: "NSUUID"
    case .URIAttributeType: "NSURL"
    case .objectIDAttributeType: "NSManagedObjectID"
    case .compositeAttributeType: "NSDictionary"
    case .undefinedAttributeType, .transformableAttributeType: nil
    }
  }
}
