import Synchronization

/// Names an object within a process: a row of a store, or an object that has no row yet.
struct ObjectKey: Hashable, Sendable {
  /// The number of the ``StoreBinding``; 0 for objects without a row.
  var store: Int32
  var reference: RowReference

  init(store: Int32, reference: RowReference) {
    self.store = store
    self.reference = reference
  }

  var isTemporary: Bool { store == 0 }

  func hash(into hasher: inout Hasher) {
    hasher.combine(reference.key)
    hasher.combine(Int64(store) << 32 | Int64(reference.entityNumber))
  }

  private static let lastTemporary = Atomic<Int64>(0)

  /// A key that no other object of the process has.
  static func temporary() -> ObjectKey {
    let number = lastTemporary.wrappingAdd(1, ordering: .relaxed).newValue
    return ObjectKey(store: 0, reference: RowReference(entityNumber: 0, key: -number))
  }
}

extension RowReference {
  /// Whether the reference leads to an object that has no row yet.
  var isTemporary: Bool { key < 0 }
}
