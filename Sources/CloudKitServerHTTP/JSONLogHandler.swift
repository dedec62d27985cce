import Foundation
import Logging

/// Writes each message as one line of JSON, for log collectors.
package typealias JSONLogHandler = LineLogHandler<JSONLogFormat>

/// A JSON object on one line.
package enum JSONLogFormat: LogLineFormat {
  package static func line(
    of event: LogEvent,
    label: String,
    metadata: Logger.Metadata
  ) -> Data? {
    var line: [String: Any] = [
      "time": Date().formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true)),
      "level": event.level.rawValue,
      "logger": label,
      "message": event.message.description,
    ]
    for (key, value) in metadata where line[key] == nil { line[key] = plain(value) }
    guard
      var data = try? JSONSerialization.data(
        withJSONObject: line,
        options: [.sortedKeys, .withoutEscapingSlashes]
      )
    else { return nil }
    data.append(UInt8(ascii: "\n"))
    return data
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
