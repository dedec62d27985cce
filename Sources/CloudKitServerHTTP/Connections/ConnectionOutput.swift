/// The state of a connection's sending side.
enum ConnectionOutput: Hashable {
  /// Replies are written.
  case open
  /// The end of a reply waits for the client to read what was written.
  case endHeld
  /// The last reply is being written, or the client has disconnected.
  case closing
  /// The last reply was written, and the sending side closed.
  case closed

  /// Whether no further input is read.
  var isClosing: Bool { self == .closing || self == .closed }

  /// Lets the end of a reply wait.
  mutating func holdEnd() {
    if self == .open { self = .endHeld }
  }

  /// Whether the end of a reply was waiting, which is written now.
  mutating func takeHeldEnd() -> Bool {
    guard self == .endHeld else { return false }
    self = .open
    return true
  }

  /// Ends the reading of input; a held end is no longer written.
  mutating func beginClosing() {
    if self != .closed { self = .closing }
  }

  /// Notes that the last reply was written.
  mutating func close() { self = .closed }
}
