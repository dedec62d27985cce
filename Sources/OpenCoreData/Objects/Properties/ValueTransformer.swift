import Foundation
import Synchronization

/// The name of a value transformer.
public struct NSValueTransformerName: RawRepresentable, Hashable, Sendable {
  /// The name as text.
  public let rawValue: String

  /// Wraps a name.
  public init(rawValue: String) {
    self.rawValue = rawValue
  }

  /// Wraps a name.
  public init(_ rawValue: String) {
    self.rawValue = rawValue
  }

  /// The transformer between property lists or secure objects and bytes, without types enforced.
  public static let secureUnarchiveFromDataTransformerName = NSValueTransformerName(
    "NSSecureUnarchiveFromData"
  )
  /// The old transformer between archived objects and bytes.
  public static let keyedUnarchiveFromDataTransformerName = NSValueTransformerName(
    "NSKeyedUnarchiveFromData"
  )
  /// The oldest transformer between archived objects and bytes.
  public static let unarchiveFromDataTransformerName = NSValueTransformerName(
    "NSUnarchiveFromData"
  )
  /// The transformer that returns whether a value is nil.
  public static let isNilTransformerName = NSValueTransformerName("NSIsNil")
  /// The transformer that returns whether a value is not nil.
  public static let isNotNilTransformerName = NSValueTransformerName("NSIsNotNil")
  /// The transformer that negates a Boolean.
  public static let negateBooleanTransformerName = NSValueTransformerName("NSNegateBoolean")
}

/// Transforms values from one form to another; transformable attributes name one.
///
/// Foundation on Linux has none. As Apple's `ValueTransformer`, `transformedValue(_:)` goes from
/// the object to the stored bytes for transformers that apps write for Core Data; the built-in
/// unarchiving transformers go from bytes to the object, and are used the other way round.
open class ValueTransformer: NSObject, @unchecked Sendable {
  // Sendable: a transformer has no state of its own; subclasses that add some guard it.

  private static let registry = Mutex<[NSValueTransformerName: ValueTransformer]>([:])

  /// Creates a transformer.
  public override init() {
    super.init()
  }

  /// Registers a transformer by its name; nil takes it away.
  open class func setValueTransformer(
    _ transformer: ValueTransformer?,
    forName name: NSValueTransformerName
  ) {
    registry.withLock { $0[name] = transformer }
  }

  /// The transformer that was registered by a name, a built-in one, or one of the class so named.
  open class func valueTransformer(forName name: NSValueTransformerName) -> ValueTransformer? {
    if let known = registry.withLock({ $0[name] }) { return known }
    let made: ValueTransformer?
    switch name {
    case .secureUnarchiveFromDataTransformerName:
      made = NSSecureUnarchiveFromDataTransformer()
    case .keyedUnarchiveFromDataTransformerName, .unarchiveFromDataTransformerName:
      made = KeyedUnarchiveFromDataTransformer()
    case .negateBooleanTransformerName:
      made = NegateBooleanTransformer()
    case .isNilTransformerName:
      made = PresenceTransformer(answersPresence: false)
    case .isNotNilTransformerName:
      made = PresenceTransformer(answersPresence: true)
    default:
      made = transformer(ofClassNamed: name.rawValue)
    }
    guard let made else { return nil }
    registry.withLock { $0[name] = $0[name] ?? made }
    return made
  }

  private static func transformer(ofClassNamed name: String) -> ValueTransformer? {
    // A model names the class alone; on Linux a class is found with its module.
    var candidates = [name]
    if !name.contains("."), let executable = Bundle.main.executableURL {
      candidates.append(executable.deletingPathExtension().lastPathComponent + "." + name)
    }
    for candidate in candidates {
      if let found = NSClassFromString(candidate) as? any ValueTransformerMaking.Type {
        return found.makeTransformer()
      }
    }
    return nil
  }

  /// The names of all registered transformers.
  open class func valueTransformerNames() -> [NSValueTransformerName] {
    registry.withLock { $0.keys.sorted { $0.rawValue < $1.rawValue } }
  }

  /// The class of what `transformedValue(_:)` returns.
  open class func transformedValueClass() -> AnyClass { NSObject.self }

  /// Whether `reverseTransformedValue(_:)` works.
  open class func allowsReverseTransformation() -> Bool { true }

  /// The value in the other form.
  open func transformedValue(_ value: Any?) -> Any? { value }

  /// The value in its first form again.
  open func reverseTransformedValue(_ value: Any?) -> Any? { value }
}

/// A class of transformers that can be made by its name alone.
public protocol ValueTransformerMaking {
  /// Makes a transformer of the class.
  static func makeTransformer() -> ValueTransformer
}

/// Makes yes of no.
private final class NegateBooleanTransformer: ValueTransformer, @unchecked Sendable {
  override func transformedValue(_ value: Any?) -> Any? {
    NSNumber(value: !((value as? NSNumber)?.boolValue ?? false))
  }

  override func reverseTransformedValue(_ value: Any?) -> Any? { transformedValue(value) }
}

/// Whether there is a value.
private final class PresenceTransformer: ValueTransformer, @unchecked Sendable {
  // Sendable: immutable.
  private let answersPresence: Bool

  init(answersPresence: Bool) {
    self.answersPresence = answersPresence
    super.init()
  }

  override class func allowsReverseTransformation() -> Bool { false }

  override func transformedValue(_ value: Any?) -> Any? {
    NSNumber(value: (value != nil && !(value is NSNull)) == answersPresence)
  }
}

/// Lets an initializer of ours return a transformer that was registered.
public protocol ValueTransformerFinding {}

extension ValueTransformer: ValueTransformerFinding {}

extension ValueTransformerFinding where Self: ValueTransformer {
  /// The transformer that was registered by a name; nil where there is none of this class.
  public init?(forName name: NSValueTransformerName) {
    guard let found = ValueTransformer.valueTransformer(forName: name) as? Self else { return nil }
    self = found
  }
}
