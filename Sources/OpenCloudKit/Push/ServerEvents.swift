import Foundation

/// One block of a stream of server-sent events.
package struct ServerEvent: Hashable, Sendable {
  /// The event's identifier, from which a stream resumes; nil if it has none.
  package var id: String?
  /// The event's type; `message` if it names none.
  package var name: String
  /// The event's data; nil if it has none.
  package var data: Data?

  package init(id: String?, name: String, data: Data?) {
    self.id = id
    self.name = name
    self.data = data
  }
}

/// Parses a stream of server-sent events, whose bytes may be split anywhere.
package struct ServerEventReader: Sendable {
  /// The stream is not a valid stream of events.
  package struct Malformed: Error {}

  /// The limit of an event in bytes; a notification has a few hundred.
  package static let largestEvent = 1 << 20

  private var line: [UInt8] = []
  private var id: String?
  private var name = ""
  private var data: [UInt8]?
  private var size = 0
  private var followsReturn = false

  package init() {}

  /// The events that are completed by these bytes.
  package mutating func read(_ bytes: Data) throws(Malformed) -> [ServerEvent] {
    var events: [ServerEvent] = []
    for byte in bytes {
      let isReturn = byte == 0x0D
      defer { followsReturn = isReturn }
      switch byte {
      // A line ends with CR, LF or CR LF.
      case 0x0A where followsReturn: continue
      case 0x0A, 0x0D:
        if let event = endLine() { events.append(event) }
      default:
        size += 1
        guard size <= Self.largestEvent else { throw Malformed() }
        line.append(byte)
      }
    }
    return events
  }

  private mutating func endLine() -> ServerEvent? {
    defer { line.removeAll(keepingCapacity: true) }
    guard !line.isEmpty else { return endEvent() }
    let colon = line.firstIndex(of: UInt8(ascii: ":")) ?? line.endIndex
    var value = line[min(colon + 1, line.endIndex)...]
    if value.first == UInt8(ascii: " ") { value.removeFirst() }
    switch String(decoding: line[..<colon], as: UTF8.self) {
    case "id":
      if !value.contains(0) { id = String(decoding: value, as: UTF8.self) }
    case "event": name = String(decoding: value, as: UTF8.self)
    case "data": data = (data.map { $0 + [0x0A] } ?? []) + value
    // Comments keep an idle connection open; `retry` is ignored, since the channel has its own
    // delays.
    default: break
    }
    return nil
  }

  private mutating func endEvent() -> ServerEvent? {
    defer { (id, name, data, size) = (nil, "", nil, 0) }
    guard id != nil || data != nil else { return nil }
    return ServerEvent(id: id, name: name.isEmpty ? "message" : name, data: data.map { Data($0) })
  }
}
