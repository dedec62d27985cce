import CloudKitServer
import Foundation
import Logging

/// Writes each message as one line of text, for operators and for tools that read lines.
package typealias TextLogHandler = LineLogHandler<TextLogFormat>

/// A line of text.
///
/// A message may quote text of clients and other services: a line end in a container's name or in
/// an issuer's error could look like another message, and an escape sequence could move a
/// terminal's cursor. Both are escaped.
package enum TextLogFormat: LogLineFormat {
  package static func line(
    of event: LogEvent,
    label: String,
    metadata: Logger.Metadata
  ) -> Data? {
    let time = Date().formatted(
      Date.ISO8601FormatStyle(timeZoneSeparator: .omitted, timeZone: .current)
    )
    let values = metadata.sorted { $0.key < $1.key }.map { " \($0.key)=\($0.value)" }.joined()
    let place = "\(time) \(event.level.rawValue) \(label):\(values) [\(event.source)]"
    let line = "\(place) \(event.message)"
    return Data("\(line.spelledOut)\n".utf8)
  }
}
