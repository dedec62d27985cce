import Foundation
import Logging
import Synchronization

/// Writes each message as one line of JSON, for log collectors.
package struct JSONLogHandler: LogHandler {
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
    var line: [String: Any] = [
      "time": Date().formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true)),
      "level": event.level.rawValue,
      "logger": label,
      "message": event.message.description,
    ]
    for (key, value) in metadata.merging(event.metadata ?? [:], uniquingKeysWith: { $1 })
    where line[key] == nil {
      line[key] = Self.plain(value)
    }
    guard
      var data = try? JSONSerialization.data(
        withJSONObject: line,
        options: [.sortedKeys, .withoutEscapingSlashes]
      )
    else { return }
    data.append(UInt8(ascii: "\n"))
    write(data)
  }

  private static func plain(_ value: Logger.Metadata.Value) -> Any {
    switch value {
    case .string(let text): text
    case .stringConvertible(let value):
      switch value {
      case let number as Int: number
      case let number as Double: number
      case let flag as Bool: flag
      default: value.description
      }
    case .array(let values): values.map(plain)
    case .dictionary(let values): values.mapValues(plain)
    }
  }
}
