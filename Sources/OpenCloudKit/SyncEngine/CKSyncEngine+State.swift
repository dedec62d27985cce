import Foundation
import Synchronization

extension CKSyncEngine {
  /// What a sync engine remembers: what is to be sent, and how far the service's feeds were read.
  ///
  /// It may be used from every thread. Adding a change lets the engine send it soon, unless it does
  /// not sync by itself.
  public final class State: Sendable {
    /// What was added or removed by the app, for the engine to act on.
    enum Touch: Sendable {
      /// There is something to send.
      case added
      /// Something need not be sent any more.
      case removed
    }

    private struct Box: Sendable {
      var value: SyncEngineState
      /// Whether something changed since the delegate was told.
      var isDirty = false
      /// Counts how often the app said that it has untracked changes.
      var untrackedSaid = 0
      var touched: (@Sendable (Touch) -> Void)?
    }

    private let box: Mutex<Box>

    init(_ value: SyncEngineState) {
      box = Mutex(Box(value: value))
    }

    /// Takes over whom to tell of what the app does.
    func onTouch(_ touched: @escaping @Sendable (Touch) -> Void) {
      box.withLock { $0.touched = touched }
    }

    // MARK: Pending changes

    /// The zones to save and delete, in the order they were added.
    public final var pendingDatabaseChanges: [CKSyncEngine.PendingDatabaseChange] {
      value.databaseChanges.changes
    }

    /// The records to save and delete, in the order they were added.
    public final var pendingRecordZoneChanges: [CKSyncEngine.PendingRecordZoneChange] {
      value.recordChanges.changes
    }

    /// Whether the app has changes that it keeps track of itself, outside this state.
    ///
    /// The engine asks for them when it sends next, and takes the flag back when the delegate has
    /// no more.
    public final var hasPendingUntrackedChanges: Bool {
      get { value.hasUntrackedChanges }
      set {
        touch(newValue ? .added : .removed) { box in
          box.value.hasUntrackedChanges = newValue
          if newValue { box.untrackedSaid += 1 }
        }
      }
    }

    /// The zones that have changes on the service which were not fetched yet.
    public final var zoneIDsWithUnfetchedServerChanges: [CKRecordZone.ID] {
      value.unfetchedZones
    }

    /// Adds zones to save or delete; of two changes of one zone the later one counts.
    public final func add(pendingDatabaseChanges: [CKSyncEngine.PendingDatabaseChange]) {
      guard !pendingDatabaseChanges.isEmpty else { return }
      touch(.added) { $0.value.databaseChanges.add(pendingDatabaseChanges) }
    }

    /// Takes back zones to save or delete.
    public final func remove(pendingDatabaseChanges: [CKSyncEngine.PendingDatabaseChange]) {
      guard !pendingDatabaseChanges.isEmpty else { return }
      touch(.removed) { $0.value.databaseChanges.remove(pendingDatabaseChanges) }
    }

    /// Adds records to save or delete; of two changes of one record the later one counts.
    public final func add(pendingRecordZoneChanges: [CKSyncEngine.PendingRecordZoneChange]) {
      guard !pendingRecordZoneChanges.isEmpty else { return }
      touch(.added) { $0.value.add(pendingRecordZoneChanges) }
    }

    /// Removes records to save or delete from what is pending.
    ///
    /// Removing a save that the service refused, which is not pending any more, says that the app does
    /// not need it: until then, or until the record is saved or deleted, the engine does not report
    /// the record's zone as deleted because of an expired change token.
    public final func remove(pendingRecordZoneChanges: [CKSyncEngine.PendingRecordZoneChange]) {
      guard !pendingRecordZoneChanges.isEmpty else { return }
      touch(.removed) { $0.value.remove(pendingRecordZoneChanges) }
    }

    private func touch(_ touch: Touch, _ change: (inout Box) -> Void) {
      let touched = box.withLock { box in
        change(&box)
        box.isDirty = true
        return box.touched
      }
      touched?(touch)
    }

    // MARK: The engine's side

    /// Everything, as it is now.
    var value: SyncEngineState { box.withLock { $0.value } }

    /// Changes what the engine remembers; the delegate is told of it later.
    func update<Output: Sendable>(
      _ change: (inout sending SyncEngineState) -> sending Output
    ) -> Output {
      box.withLock { box in
        box.isDirty = true
        return change(&box.value)
      }
    }

    /// The state to keep, if it changed since the last time.
    func takeUpdate() -> Serialization? {
      box.withLock { box in
        guard box.isDirty else { return nil }
        box.isDirty = false
        return Serialization(box.value)
      }
    }

    /// How often the app said that it has untracked changes.
    var untrackedCount: Int { box.withLock { $0.untrackedSaid } }

    /// Takes the flag back, unless the app said again meanwhile that it has changes.
    func settleUntrackedChanges(_ count: Int) {
      box.withLock { box in
        guard box.value.hasUntrackedChanges, box.untrackedSaid == count else { return }
        box.value.hasUntrackedChanges = false
        box.isDirty = true
      }
    }

    /// A sync engine's state in a form to keep.
    ///
    /// What is in it is the engine's own affair; it goes through every `Encoder`.
    public struct Serialization: Codable, Sendable {
      let value: SyncEngineState

      init(_ value: SyncEngineState) {
        self.value = value
      }

      /// Reads a state that was kept.
      public init(from decoder: any Decoder) throws {
        value = try SyncEngineState(from: decoder)
      }

      /// Writes the state.
      public func encode(to encoder: any Encoder) throws {
        try value.encode(to: encoder)
      }
    }
  }
}

extension CKSyncEngine.State: CustomStringConvertible {
  /// The state in words, for logs.
  public final var description: String {
    "pendingDatabaseChanges=\(pendingDatabaseChanges), "
      + "pendingRecordZoneChanges=\(pendingRecordZoneChanges), "
      + "hasPendingUntrackedChanges=\(hasPendingUntrackedChanges)"
  }
}
