import Foundation
import Logging

/// How a message becomes one line of a log.
package protocol LogLineFormat {
  /// The line with its end; nil if the message cannot be written.
  static func line(of event: LogEvent, label: String, metadata: Logger.Metadata) -> Data?
}

/// Writes each message as one line of a format.
package struct LineLogHandler<Format: LogLineFormat>: LogHandler {
  package var metadata: Logger.Metadata = [:]
  package var logLevel: Logger.Level
  private let label: String
  private let write: @Sendable (Data) -> Void

  package init(
    label: String,
    level: Logger.Level = .info,
    write: @escaping @Sendable (Data) -> Void
  ) {
    self.label = label
    logLevel = level
    self.write = write
  }

  package subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }

  package func log(event: LogEvent) {
    let values = metadata.merging(event.metadata ?? [:], uniquingKeysWith: { $1 })
    if let line = Format.line(of: event, label: label, metadata: values) { write(line) }
  }
}
