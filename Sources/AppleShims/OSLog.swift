#if !canImport(os)
/// A log with the interface of Apple's, which keeps nothing.
///
/// ```swift
/// let log = OSLog(subsystem: "org.example.notes", category: "sync")
/// os_log("The import failed: %@", log: log, type: .error, "\(failure)")
/// ```
public final class OSLog: Sendable {
  /// The log of the process.
  public static let `default` = OSLog()
  /// The log that discards everything, as all logs do here.
  public static let disabled = OSLog()

  private init() {}

  /// Creates a log of a subsystem and a category.
  public init(subsystem: String, category: String) {}

  /// Creates a log of a subsystem and a category with a behaviour of its own.
  public init(subsystem: String, category: Category) {}

  /// Whether messages of a level are kept, which they are not.
  public func isEnabled(type: OSLogType) -> Bool { false }

  /// The categories with a behaviour of their own.
  public struct Category: Hashable, Sendable {
    /// The name of the category.
    public let rawValue: String

    /// Points that a profiler shows.
    public static let pointsOfInterest = Category(rawValue: "PointsOfInterest")
    /// Messages that a profiler turns on.
    public static let dynamicTracing = Category(rawValue: "DynamicTracing")
    /// Messages with the stack of calls.
    public static let dynamicStackTracing = Category(rawValue: "DynamicStackTracing")
  }
}

/// The level of a message.
public struct OSLogType: Hashable, Sendable {
  /// The level as a number, as on Apple's platforms.
  public let rawValue: UInt8

  /// Wraps a number.
  public init(rawValue: UInt8) {
    self.rawValue = rawValue
  }

  /// The default level.
  public static let `default` = OSLogType(rawValue: 0)
  /// Helps, but is not essential.
  public static let info = OSLogType(rawValue: 1)
  /// Helps in debugging.
  public static let debug = OSLogType(rawValue: 2)
  /// An error.
  public static let error = OSLogType(rawValue: 16)
  /// A fault of the program.
  public static let fault = OSLogType(rawValue: 17)
}

/// Discards a message with placeholders in the manner of C.
///
/// The arguments are of any type: objects such as `NSError` are no `CVarArg` on Linux.
public func os_log(
  _ message: StaticString,
  dso: UnsafeRawPointer? = nil,
  log: OSLog = .default,
  type: OSLogType = .default,
  _ arguments: Any?...
) {}

/// Discards a message with placeholders in the manner of C.
public func os_log(
  _ type: OSLogType,
  dso: UnsafeRawPointer? = nil,
  log: OSLog = .default,
  _ message: StaticString,
  _ arguments: Any?...
) {}

/// Discards a message.
@_disfavoredOverload
public func os_log(_ message: @autoclosure () -> OSLogMessage) {}

/// Discards a message of a level.
@_disfavoredOverload
public func os_log(
  _ type: OSLogType = .default,
  log: OSLog = .default,
  _ message: @autoclosure () -> OSLogMessage
) {}
#endif
