import CloudKitWebServices

/// Whether a container may get new rows, asked in the transaction that writes them.
struct ContainerGate<Session: SQLSession> {
  let session: Session

  enum State: Hashable {
    case open
    case erasing
    /// Deleted a while ago; requests from before may still run.
    case erased
  }

  /// The state, which holds until the transaction ends: a deletion, which removes the container's row,
  /// waits for it.
  func state(of container: String) throws -> State {
    _ = try session.query(
      "SELECT container FROM containers WHERE container = $1 \(session.dialect.sharedLock)",
      [.text(container)]
    ) { _ in }
    let key = ContainerErasing.key(container)
    let expires = try session.query(
      "SELECT expires FROM directory_entries WHERE kind = $1 AND name = $2",
      [.text(key.kind.rawValue), .text(key.name)]
    ) { $0.int64(0) }.first
    guard let expires else { return .open }
    return expires == .max ? .erasing : .erased
  }

  static var refusal: ErrorDictionary {
    ErrorDictionary(.tryAgainLater, "the container is being deleted", retryAfter: 5)
  }
}
