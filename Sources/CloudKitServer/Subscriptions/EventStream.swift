import CloudKitWebServices
import Foundation

/// The notifications of one device as server-sent events: numbered, and each at least once.
///
/// An event named `notification` carries one payload. `resync` says that some were lost: fetch what
/// changed, then listen on. Reconnecting with the last ID goes on where the listener stopped.
package struct EventStream: Sendable {
  private let hub: NotificationHub
  private let token: String
  private var position: Int64
  private var isStarted = false
  /// The listener knows a number of another run of the server.
  private let isFromAnotherRun: Bool

  /// `lastEventID` is what the listener has read; nil for one that begins.
  init(_ hub: NotificationHub, token: String, lastEventID: String?) {
    self.hub = hub
    self.token = token
    let beginning = hub.beginStream(token)
    let parts = (lastEventID ?? "").split(separator: "-")
    if parts.count == 2, parts[0] == hub.run, let number = Int64(parts[1]), number >= 0 {
      position = number
      isFromAnotherRun = false
    } else {
      position = beginning
      isFromAnotherRun = lastEventID?.isEmpty == false
    }
  }

  /// The next bytes to send; nil when the stream is over.
  package mutating func next() async -> Data? {
    guard isStarted else {
      isStarted = true
      // Reconnect soon, and know from here on where to go on.
      let event = isFromAnotherRun ? "event: resync\ndata: {}\n" : ": listening\n"
      return Data("retry: 1000\nid: \(hub.run)-\(position)\n\(event)\n".utf8)
    }
    guard !Task.isCancelled else { return nil }
    switch await hub.stream(token, after: position) {
    case .closed: return nil
    case .nothing: return Task.isCancelled ? nil : Data(": \n\n".utf8)
    case .resync(let number):
      position = number
      return Data("id: \(hub.run)-\(number)\nevent: resync\ndata: {}\n\n".utf8)
    case .entries(let entries):
      var bytes = Data()
      for entry in entries {
        guard let payload = try? WireCoding.encode(entry.notification) else { continue }
        bytes += Data("id: \(hub.run)-\(entry.number)\nevent: notification\ndata: ".utf8)
        bytes += payload + Data("\n\n".utf8)
        position = entry.number
      }
      return bytes
    }
  }
}
