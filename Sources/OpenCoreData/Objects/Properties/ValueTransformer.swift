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
/// ```swift
/// final class TagsTransformer: ValueTransformer, @unchecked Sendable {
///   override func transformedValue(_ value: Any?) -> Any? {
///     (value as? [String]).map { Data($0.joined(separator: "\n").utf8) }
///   }
///
///   override func reverseTransformedValue(_ value: Any?) -> Any? {
///     (value as? Data).map { String(decoding: $0, as: UTF8.self).components(separatedBy: "\n") }
///   }
/// }
/// ```
///
/// Foundation on Linux has none. As Apple's `ValueTransformer`, `transformedValue(_:)` goes from
/// the object to the stored bytes for transformers that apps write for Core Data; the built-in
/// unarchiving transformers go from bytes to the object, and are used the other way round.
open class ValueTransformer: NSObject, @unchecked Sendable {
  // Sendable: a transformer has no state of its own; subclasses that add some guard it.

  /// The transformers by name, and what is known of the modules that could declare others.
  private struct Registry {
    /// Names that are remembered as those of no class; a model has few.
    static let missingLimit = 1_000
    var known: [NSValueTransformerName: ValueTransformer] = [:]
    var missing: Set<NSValueTransformerName> = []
    /// The modules of the classes of entities in use.
    var modules: [String] = []
  }

  private static let registry = Mutex(Registry())

  /// Notes modules in which transformers are looked up by the names of their classes.
  static func note(modules: [String]) {
    registry.withLock { registry in
      for module in modules where !registry.modules.contains(module) {
        registry.modules.append(module)
        registry.missing = []
      }
    }
  }

  /// Makes a transformer by a function of the main actor, on any thread; generated code calls it.
  ///
  /// A module's classes may be isolated to the main actor. A transformer is used on all threads, so that
  /// it is made on any, too.
  public static func made(
    _ name: String,
    by body: @escaping @MainActor (String) -> ValueTransformer?
  ) -> ValueTransformer? {
    typealias Unisolated = (String) -> ValueTransformer?
    return unsafeBitCast(body, to: Unisolated.self)(name)
  }

  /// Creates a transformer.
  public override init() {
    super.init()
  }

  /// Registers a transformer by its name; nil takes it away.
  open class func setValueTransformer(
    _ transformer: ValueTransformer?,
    forName name: NSValueTransformerName
  ) {
    registry.withLock { $0.known[name] = transformer }
  }

  /// The transformer that was registered by a name, a built-in one, or one of the class so named.
  ///
  /// Classes are found in the modules of the app that have the build plugin; see
  /// ``ValueTransformerNaming``.
  open class func valueTransformer(forName name: NSValueTransformerName) -> ValueTransformer? {
    let (known, isMissing, modules) = registry.withLock {
      ($0.known[name], $0.missing.contains(name), $0.modules.count)
    }
    if let known { return known }
    if isMissing { return nil }
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
    registry.withLock { registry in
      if let made {
        registry.known[name] = registry.known[name] ?? made
      } else if registry.modules.count == modules, registry.missing.count < Registry.missingLimit {
        // No module was noted meanwhile that may have it.
        registry.missing.insert(name)
      }
    }
    return made
  }

  private static func transformer(ofClassNamed name: String) -> ValueTransformer? {
    // A model names the class alone; on Linux a class is found with its module.
    for candidate in ManagedObjectClassResolver.candidates(className: name, near: nil) {
      if let found = NSClassFromString(candidate) as? any ValueTransformerMaking.Type {
        return found.makeTransformer()
      }
    }
    let modules = ManagedObjectClassResolver.modules(near: nil) + registry.withLock { $0.modules }
    for module in modules {
      let table =
        NSClassFromString("\(module).ManagedTransformerNames") as? any ValueTransformerNaming.Type
      if let found = table?.transformer(ofClassNamed: name) { return found }
    }
    return nil
  }

  /// The names of all registered transformers.
  open class func valueTransformerNames() -> [NSValueTransformerName] {
    registry.withLock { $0.known.keys.sorted { $0.rawValue < $1.rawValue } }
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

/// Makes the transformers of a module's classes by their names.
///
/// The build plugin writes one class named `ManagedTransformerNames` that conforms to this protocol into
/// each module that declares transformers with an initializer without parameters. It is looked up by
/// that name, as the classes of a model whose code never registers a transformer are found on Apple's
/// platforms.
public protocol ValueTransformerNaming: AnyObject {
  /// Makes a transformer of the class with a name; nil where the module has none.
  static func transformer(ofClassNamed name: String) -> ValueTransformer?
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
