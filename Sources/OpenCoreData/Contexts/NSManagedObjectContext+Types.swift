import Foundation

/// How a context's work is scheduled.
public enum NSManagedObjectContextConcurrencyType: UInt, Sendable, Hashable {
  /// On any thread that the app chooses; it behaves like a private queue here.
  case confinementConcurrencyType = 0
  /// On a queue of its own.
  case privateQueueConcurrencyType = 1
  /// On the main queue.
  case mainQueueConcurrencyType = 2
}

extension NSManagedObjectContext {
  /// How a context's work is scheduled, as a structure.
  public struct ConcurrencyType: RawRepresentable, Hashable, Sendable {
    /// The type as an enumeration.
    public var rawValue: NSManagedObjectContextConcurrencyType

    /// Wraps a type.
    public init(rawValue: NSManagedObjectContextConcurrencyType) {
      self.rawValue = rawValue
    }

    /// On a queue of its own.
    public static let privateQueue = ConcurrencyType(rawValue: .privateQueueConcurrencyType)
    /// On the main queue.
    public static let mainQueue = ConcurrencyType(rawValue: .mainQueueConcurrencyType)
  }

  /// A weak reference to a context.
  struct WeakContext {
    private let handle: WeakHandle<NSManagedObjectContext>

    init(context: NSManagedObjectContext) {
      handle = context.handle
    }

    var context: NSManagedObjectContext? { handle.object }
  }
}
