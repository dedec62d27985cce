#if !canImport(os)
/// A logger with the interface of Apple's, which writes nothing and evaluates no message.
///
/// ```swift
/// let logger = Logger(subsystem: "org.example.notes", category: "sync")
/// logger.error("The import failed: \(failure, privacy: .public)")
/// ```
///
/// To keep the messages on Linux, use `Logger` of swift-log there instead.
public struct Logger: Sendable {
  /// Creates a logger without a subsystem.
  public init() {}

  /// Creates a logger of a log.
  public init(_ log: OSLog) {}

  /// Creates a logger of a subsystem and a category.
  public init(subsystem: String, category: String) {}

  /// Discards a message of the default level.
  public func log(_ message: @autoclosure () -> OSLogMessage) {}

  /// Discards a message of a level.
  public func log(level: OSLogType, _ message: @autoclosure () -> OSLogMessage) {}

  /// Discards a message that helps in debugging.
  public func trace(_ message: @autoclosure () -> OSLogMessage) {}

  /// Discards a message that helps in debugging.
  public func debug(_ message: @autoclosure () -> OSLogMessage) {}

  /// Discards a message that helps, but is not essential.
  public func info(_ message: @autoclosure () -> OSLogMessage) {}

  /// Discards a message of the default level.
  public func notice(_ message: @autoclosure () -> OSLogMessage) {}

  /// Discards a message about an unexpected failure that the program copes with.
  public func warning(_ message: @autoclosure () -> OSLogMessage) {}

  /// Discards a message about an error.
  public func error(_ message: @autoclosure () -> OSLogMessage) {}

  /// Discards a message about a serious error.
  public func critical(_ message: @autoclosure () -> OSLogMessage) {}

  /// Discards a message about a fault of the program.
  public func fault(_ message: @autoclosure () -> OSLogMessage) {}
}
#endif
