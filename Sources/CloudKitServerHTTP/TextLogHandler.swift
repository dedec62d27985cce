import CloudKitServer
import Foundation
import Logging

/// Writes each message as one line of text, for people and for tools that read lines.
///
/// What a message quotes came from elsewhere: a container's name or an issuer's word that held the end of
/// a line could look like another message, and an escape sequence could move a terminal's cursor. Both are
/// spelled out.
package struct TextLogHandler: LogHandler {
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
    let time = Date().formatted(
      Date.ISO8601FormatStyle(timeZoneSeparator: .omitted, timeZone: .current)
    )
    let values = metadata.merging(event.metadata ?? [:], uniquingKeysWith: { $1 })
      .sorted { $0.key < $1.key }.map { " \($0.key)=\($0.value)" }.joined()
    let place = "\(time) \(event.level.rawValue) \(label):\(values) [\(event.source)]"
    let line = "\(place) \(event.message)"
    write(Data("\(line.spelledOut)\n".utf8))
  }
}
