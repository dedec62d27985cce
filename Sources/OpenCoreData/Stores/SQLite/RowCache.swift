import Synchronization

/// The rows that were read or written last, shared by all contexts of a store.
///
/// Two generations bound it: when the young one is full it becomes the old one, and what the old
/// one held is forgotten unless it was asked for meanwhile.
final class RowCache: Sendable {
  private struct State: @unchecked Sendable {
    // Unchecked: rows are immutable; the dictionaries are guarded by the mutex.
    var young: [RowReference: Row] = [:]
    var old: [RowReference: Row] = [:]
    /// Grows with every commit: what a reader read before it is not kept.
    var epoch = 0
  }

  private let state = Mutex(State())
  private let generationLimit: Int

  /// Two generations of this many rows; a row of ten values takes about 400 bytes.
  init(generationLimit: Int = 50_000) {
    self.generationLimit = generationLimit
  }

  var epoch: Int { state.withLock { $0.epoch } }

  func row(_ reference: RowReference) -> Row? {
    state.withLock { state in
      if let row = state.young[reference] { return row }
      guard let row = state.old.removeValue(forKey: reference) else { return nil }
      insert(row, into: &state)
      return row
    }
  }

  /// Splits references into the rows that are known and the references that are not.
  func rows(_ references: [RowReference]) -> (known: [RowReference: Row], unknown: [RowReference]) {
    state.withLock { state in
      var known: [RowReference: Row] = [:]
      var unknown: [RowReference] = []
      known.reserveCapacity(references.count)
      for reference in references {
        if let row = state.young[reference] ?? state.old[reference] {
          known[reference] = row
        } else {
          unknown.append(reference)
        }
      }
      return (known, unknown)
    }
  }

  /// Keeps rows that were read when the cache had this epoch; later ones may be newer than they are.
  func insert(_ rows: some Collection<Row>, readAt epoch: Int) {
    guard !rows.isEmpty else { return }
    state.withLock { state in
      guard state.epoch == epoch else { return }
      reserve(rows.count, in: &state)
      for row in rows { insert(row, into: &state) }
    }
  }

  /// Takes in what a commit wrote.
  func commit(written: [Row], gone: [RowReference]) {
    state.withLock { state in
      state.epoch += 1
      reserve(written.count, in: &state)
      for row in written { insert(row, into: &state) }
      for reference in gone {
        state.young[reference] = nil
        state.old[reference] = nil
      }
    }
  }

  func forget(_ references: [RowReference]) {
    state.withLock { state in
      for reference in references {
        state.young[reference] = nil
        state.old[reference] = nil
      }
    }
  }

  func removeAll() {
    state.withLock { state in
      state.epoch += 1
      state.young = [:]
      state.old = [:]
    }
  }

  private func reserve(_ count: Int, in state: inout State) {
    guard count > state.young.capacity - state.young.count else { return }
    // At least doubling, or every commit would copy everything.
    let wanted = max(state.young.count + count, state.young.capacity * 2)
    state.young.reserveCapacity(min(wanted, generationLimit))
  }

  private func insert(_ row: Row, into state: inout State) {
    if state.young.count >= generationLimit {
      state.old = state.young
      state.young = [:]
    }
    state.young[row.reference] = row
  }
}
