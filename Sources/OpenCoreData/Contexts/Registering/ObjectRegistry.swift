import CSwiftRuntime
import Synchronization

/// The objects of a context by key: one instance for each row.
///
/// Objects are not retained. A Swift weak reference would give each object a side table, which
/// costs an allocation and makes every later retain and release slower; so the table holds
/// addresses, and an object removes itself when it is released. That may be on any thread, hence
/// the lock. An object that is being released while it is looked up counts as removed: its retain
/// fails.
final class ObjectRegistry: Sendable {
  private struct State: ~Copyable, @unchecked Sendable {
    // Unchecked: guarded by the mutex.
    var table = ObjectTable()
  }

  private let state = Mutex(State())

  @inline(__always)
  private static func word(_ key: ObjectKey) -> UInt64 {
    SharedObjectState.word(key.store, key.reference.entityNumber)
  }

  func object(_ key: ObjectKey) -> NSManagedObject? {
    object(Self.word(key), key.reference.key)
  }

  /// The object with a shared state's word and a key.
  @inline(__always)
  func object(_ word: UInt64, _ key: Int64) -> NSManagedObject? {
    state.withLock { $0.table.object(word, key).flatMap(Self.retained) }
  }

  /// Registers an object under its key, which must not change until it is removed.
  ///
  /// The object must belong to the registry's context: its release removes it from that context's
  /// registry.
  func insert(_ object: NSManagedObject) {
    let address = UnsafeRawPointer(Unmanaged.passUnretained(object).toOpaque())
    let key = object.key
    state.withLock { $0.table.insert(address, Self.word(key), key.reference.key) }
  }

  /// Registers an object under its shared state's word and its key, unless another object has them:
  /// then that one is returned.
  @inline(__always)
  func enter(_ object: NSManagedObject, _ word: UInt64, _ key: Int64) -> NSManagedObject? {
    let address = UnsafeRawPointer(Unmanaged.passUnretained(object).toOpaque())
    return state.withLock { state in
      if let known = state.table.object(word, key).flatMap(Self.retained) { return known }
      state.table.insert(address, word, key)
      return nil
    }
  }

  /// Registers objects under their keys.
  func insert(_ objects: [NSManagedObject]) {
    state.withLock { state in
      for object in objects {
        let address = UnsafeRawPointer(Unmanaged.passUnretained(object).toOpaque())
        let key = object.key
        state.table.insert(address, Self.word(key), key.reference.key)
      }
    }
  }

  func remove(_ key: ObjectKey) {
    state.withLock { $0.table.remove(Self.word(key), key.reference.key) }
  }

  /// Called by an object that is being released, on any thread.
  func objectIsReleased(_ object: NSManagedObject, _ shared: SharedObjectState, _ key: Int64) {
    let address = UnsafeRawPointer(Unmanaged.passUnretained(object).toOpaque())
    // Another object may already be registered under the key.
    state.withLock { $0.table.remove(shared.word, key, ifHolding: address) }
  }

  /// Makes an object discard what can be read again, if nothing but the array that a fetch returned
  /// retains it.
  func makeCompact(_ key: ObjectKey) {
    state.withLock { state in
      guard let address = state.table.object(Self.word(key), key.reference.key),
        swift_retainCount(UnsafeMutableRawPointer(mutating: address)) == 1
      else { return }
      // An object that is released now waits for the lock before its memory is freed.
      Unmanaged<NSManagedObject>.fromOpaque(address)._withUnsafeGuaranteedRef { $0.becomeCompact() }
    }
  }

  func removeAll() {
    state.withLock { $0.table.removeAll() }
  }

  /// The objects that are still in memory.
  var objects: [NSManagedObject] {
    state.withLock { state in
      var result: [NSManagedObject] = []
      result.reserveCapacity(state.table.count)
      state.table.forEach { address in
        if let object = Self.retained(address) { result.append(object) }
      }
      return result
    }
  }

  /// The broken invariants of the table, a sentence each.
  func brokenTable() -> [String] { state.withLock { $0.table.brokenInvariants() } }

  /// The object at an address of the table, unless it is being released.
  @inline(__always)
  private static func retained(_ address: UnsafeRawPointer) -> NSManagedObject? {
    guard let held = swift_tryRetain(UnsafeMutableRawPointer(mutating: address)) else { return nil }
    return Unmanaged<NSManagedObject>.fromOpaque(held).takeRetainedValue()
  }
}
