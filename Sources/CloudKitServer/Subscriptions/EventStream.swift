import CloudKitWebServices
import Foundation

/// The notifications of one device as server-sent events: numbered, and each delivered at least
/// once.
///
/// An event named `notification` has one payload. `resync` means that some were lost: fetch all
/// changes, then listen again. Reconnecting with the last ID continues after that event.
package struct EventStream: Sendable {
  private let hub: NotificationHub
  private let token: String
  private var position: Int64
  private var isStarted = false
  /// The listener sent a number of another run of the server.
  private let isFromAnotherRun: Bool

  /// `lastEventID` is the last event that the listener read; nil for a new one.
  init(_ hub: NotificationHub, token: String, lastEventID: String?) {
    self.hub = hub
    self.token = token
    let beginning = hub.beginStream(token)
    let parts = (lastEventID ?? "").split(ascii: "-")
    if parts.count == 2, parts[0] == hub.run, let number = Int64(parts[1]), number >= 0 {
      position = number
      isFromAnotherRun = false
    } else {
      position = beginning
      isFromAnotherRun = lastEventID?.isEmpty == false
    }
  }

  /// The first bytes of the stream: the reconnection delay, and the number from which it continues.
  package var greeting: Data {
    let event = isFromAnotherRun ? "event: resync\ndata: {}\n" : ": listening\n"
    return Data("retry: 1000\nid: \(hub.run)-\(position)\n\(event)\n".utf8)
  }

  /// Calls back once, on any thread, when there is more to send or nothing was sent for a while.
  ///
  /// The listener needs no task and no stack while it waits.
  package func wait(_ serve: @escaping @Sendable (Event) -> Void) -> EventWait {
    hub.stream(token, after: position) { serve(Event(delivery: $0)) }
  }

  /// The result of a wait.
  package struct Event: Sendable {
    fileprivate var delivery: NotificationHub.Delivery
  }

  /// The bytes of an event; nil when the stream has ended.
  package mutating func bytes(of event: Event) -> Data? {
    switch event.delivery {
    case .closed: return nil
    case .nothing: return Data(": \n\n".utf8)
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

extension EventStream {
  /// Suspends until the next bytes; nil when the stream has ended.
  package mutating func next() async -> Data? {
    guard isStarted else {
      isStarted = true
      return greeting
    }
    guard !Task.isCancelled else { return nil }
    let event = Event(delivery: await hub.stream(token, after: position))
    return Task.isCancelled ? nil : bytes(of: event)
  }
}
