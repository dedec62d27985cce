import Synchronization

/// The branches of former incarnations that were read last.
///
/// A branch has 16 bytes for each partition of the server. After a failover each device sends tokens
/// of the former incarnation, many in one request, and each asks for one number of the same branch.
final class BranchCache: Sendable {
  private struct State {
    var present = ""
    /// The one that was read last at the end.
    var known: [(incarnation: String, branch: IncarnationBranch)] = []
  }

  private let state = Mutex(State())

  /// Devices that were away for long have older ones; each is 1.6 MB for 100,000 partitions.
  private static let limit = 4

  /// A branch, which never changes while the storage stays in its present incarnation; nil, which is not
  /// kept, for an incarnation that the storage does not know.
  func branch(
    _ incarnation: String,
    in present: String,
    _ read: () throws -> IncarnationBranch?
  ) rethrows -> IncarnationBranch? {
    let known = state.withLock { state in
      if state.present != present { state = State(present: present) }
      guard let place = state.known.firstIndex(where: { $0.incarnation == incarnation }) else {
        return IncarnationBranch?.none
      }
      let found = state.known.remove(at: place)
      state.known.append(found)
      return found.branch
    }
    if let known { return known }
    guard let branch = try read() else { return nil }
    state.withLock { state in
      guard state.present == present,
        !state.known.contains(where: { $0.incarnation == incarnation })
      else { return }
      state.known.append((incarnation, branch))
      if state.known.count > Self.limit { state.known.removeFirst() }
    }
    return branch
  }
}
