import Foundation
import Synchronization

extension CKSyncEngine {
  /// The state of a sync engine: the pending changes, and the positions in the service's feeds.
  ///
  /// It may be used from every thread. An engine that syncs automatically sends an added change
  /// soon.
  public final class State: Sendable {
    /// A change that the app made to the state, for the engine to act on.
    enum Touch: Sendable {
      /// A change to send was added.
      case added
      /// A change to send was removed.
      case removed
    }

    private struct Box: Sendable {
      var value: SyncEngineState
      /// Whether the state changed since the delegate was last notified.
      var isDirty = false
      /// Counts how often the app set the flag for untracked changes.
      var untrackedSaid = 0
      var touched: (@Sendable (Touch) -> Void)?
    }

    private let box: Mutex<Box>

    init(_ value: SyncEngineState) {
      box = Mutex(Box(value: value))
    }

    /// Sets the callback for changes made by the app.
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

    /// Whether the app has changes that it tracks itself, outside this state.
    ///
    /// The engine asks the delegate for them with the next send, and resets the flag when the
    /// delegate has no more.
    public final var hasPendingUntrackedChanges: Bool {
      get { value.hasUntrackedChanges }
      set {
        touch(newValue ? .added : .removed) { box in
          box.value.hasUntrackedChanges = newValue
          if newValue { box.untrackedSaid += 1 }
        }
      }
    }

    /// The zones with changes on the service that were not fetched yet.
    public final var zoneIDsWithUnfetchedServerChanges: [CKRecordZone.ID] {
      value.unfetchedZones
    }

    /// Adds zones to save or delete; a later change of the same zone replaces the earlier one.
    public final func add(pendingDatabaseChanges: [CKSyncEngine.PendingDatabaseChange]) {
      guard !pendingDatabaseChanges.isEmpty else { return }
      touch(.added) { $0.value.databaseChanges.add(pendingDatabaseChanges) }
    }

    /// Removes zones to save or delete.
    public final func remove(pendingDatabaseChanges: [CKSyncEngine.PendingDatabaseChange]) {
      guard !pendingDatabaseChanges.isEmpty else { return }
      touch(.removed) { $0.value.databaseChanges.remove(pendingDatabaseChanges) }
    }

    /// Adds records to save or delete; a later change of the same record replaces the earlier one.
    public final func add(pendingRecordZoneChanges: [CKSyncEngine.PendingRecordZoneChange]) {
      guard !pendingRecordZoneChanges.isEmpty else { return }
      touch(.added) { $0.value.add(pendingRecordZoneChanges) }
    }

    /// Removes records to save or delete from the pending changes.
    ///
    /// Removing a save that the service refused, which is no longer pending, says that the app does
    /// not need it. Until the app does so, or the record is saved or deleted, the engine does not
    /// report the record's zone as deleted because of an expired change token.
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

    // MARK: Internal state

    /// The current state.
    var value: SyncEngineState { box.withLock { $0.value } }

    /// Changes the state; the delegate is notified later.
    func update<Output: Sendable>(
      _ change: (inout sending SyncEngineState) -> sending Output
    ) -> Output {
      box.withLock { box in
        box.isDirty = true
        return change(&box.value)
      }
    }

    /// The state to store, if it changed since the last call.
    func takeUpdate() -> Serialization? {
      box.withLock { box in
        guard box.isDirty else { return nil }
        box.isDirty = false
        return Serialization(box.value)
      }
    }

    /// How often the app set the flag for untracked changes.
    var untrackedCount: Int { box.withLock { $0.untrackedSaid } }

    /// Resets the flag, unless the app set it again since `count` was read.
    func settleUntrackedChanges(_ count: Int) {
      box.withLock { box in
        guard box.value.hasUntrackedChanges, box.untrackedSaid == count else { return }
        box.value.hasUntrackedChanges = false
        box.isDirty = true
      }
    }

    /// A sync engine's state in a form that can be stored.
    ///
    /// Its contents are private to the engine; every `Encoder` can write it.
    public struct Serialization: Codable, Sendable {
      let value: SyncEngineState

      init(_ value: SyncEngineState) {
        self.value = value
      }

      /// Reads a stored state.
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
