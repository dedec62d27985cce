/// Why a connection reads nothing at present, and whether a read of the channel waits for that.
///
/// A reason belongs to one request, by its number on the connection: the reader of an upload may end
/// after the reply to it, and releases nothing of the request that follows.
struct ReadHolds {
  enum Reason: Hashable {
    /// The reader of an upload has paused.
    case upload
    /// The credential of the request is being checked, before its large body.
    case credentialCheck
  }

  private struct Hold: Hashable {
    var reason: Reason
    var request: Int
  }

  private var holds: Set<Hold> = []
  private var hasWaitingRead = false

  /// Whether any request holds reads.
  var isHolding: Bool { !holds.isEmpty }

  mutating func hold(_ reason: Reason, of request: Int) {
    holds.insert(Hold(reason: reason, request: request))
  }

  mutating func release(_ reason: Reason, of request: Int) {
    holds.remove(Hold(reason: reason, request: request))
  }

  /// Whether a read that the channel asks for begins now; if not, it waits.
  ///
  /// Nothing is read from a client that does not read its replies: the replies to further requests
  /// would be kept in memory.
  mutating func begins(isWritable: Bool) -> Bool {
    guard isHolding || !isWritable else { return true }
    hasWaitingRead = true
    return false
  }

  /// Whether a waiting read begins, after a reason was released or the channel became writable.
  mutating func resumes(isWritable: Bool) -> Bool {
    guard hasWaitingRead, !isHolding, isWritable else { return false }
    hasWaitingRead = false
    return true
  }
}
