import CloudKitServerHTTP
import Effects
import Logging

/// The log format and level of a server.
enum LogSettings {
  static func level(_ name: String) -> Logger.Level? { Logger.Level(rawValue: name) }

  /// A logger to standard error.
  static func logger(_ configuration: ServerConfiguration) -> Logger {
    let level = level(configuration.logLevel) ?? .warning
    guard configuration.logFormat == "json" else {
      return Logger(label: "watershed") {
        TextLogHandler(label: $0, level: level) { StandardError.write($0) }
      }
    }
    return Logger(label: "watershed") {
      JSONLogHandler(label: $0, level: level) { StandardError.write($0) }
    }
  }
}
