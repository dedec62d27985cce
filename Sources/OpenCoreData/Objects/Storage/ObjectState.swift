/// Flags of an object: its pending change, and the operation in progress on it.
struct ObjectState: OptionSet {
  let rawValue: UInt16

  /// Waits to be saved for the first time.
  static let inserted = ObjectState(rawValue: 1 << 0)
  /// Has changes that wait to be saved.
  static let updated = ObjectState(rawValue: 1 << 1)
  /// Is deleted by the next save.
  static let deleted = ObjectState(rawValue: 1 << 2)
  /// Its values are not loaded.
  static let fault = ObjectState(rawValue: 1 << 3)
  /// A row was attached by a fetch; the first access takes it.
  static let prefetched = ObjectState(rawValue: 1 << 4)
  /// Is in the list of what this turn touched.
  static let touched = ObjectState(rawValue: 1 << 5)
  /// Was inserted in this turn.
  static let touchedInsert = ObjectState(rawValue: 1 << 6)
  /// Was deleted in this turn.
  static let touchedDelete = ObjectState(rawValue: 1 << 7)
  /// Was refreshed, not changed, in this turn.
  static let touchedRefresh = ObjectState(rawValue: 1 << 8)
  /// Changed since `willSave()` was called last.
  static let needsWillSave = ObjectState(rawValue: 1 << 9)
  /// Its delete rules have been applied.
  static let propagated = ObjectState(rawValue: 1 << 10)
  /// Its row has vanished from the store.
  static let vanished = ObjectState(rawValue: 1 << 11)
  /// One of its properties is observed.
  static let observed = ObjectState(rawValue: 1 << 12)
  /// Is of a fetch with a batch size: the first access loads the rows of the whole batch.
  static let batched = ObjectState(rawValue: 1 << 15)
  /// Is in a list of faults whose rows are about to be read.
  static let listed = ObjectState(rawValue: 1 << 14)
  /// Every access asks whether it is on the context's queue; see `DebugOptions`.
  static let guarded = ObjectState(rawValue: 1 << 13)
}
