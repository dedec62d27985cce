import CSwiftRuntime
import Synchronization

/// The objects of a context by key: one instance for each row.
///
/// Objects are not held. A Swift weak reference would give each object a side table, which costs
/// an allocation and makes every later retain and release slower; so the table holds addresses,
/// and an object takes itself out when it goes. That may be on any thread, hence the lock. An
/// object that is going while it is looked up counts as gone: its retain fails.
final class ObjectRegistry: Sendable {
  private struct State: ~Copyable, @unchecked Sendable {
    // Unchecked: guarded by the mutex.
    var table = PointerTable()
  }

  private let state = Mutex(State())

  /// The store's number and the entity's in one word.
  @inline(__always)
  private static func word(_ key: ObjectKey) -> UInt64 {
    UInt64(UInt32(bitPattern: key.store)) << 32
      | UInt64(UInt32(bitPattern: key.reference.entityNumber))
  }

  func object(_ key: ObjectKey) -> NSManagedObject? {
    state.withLock { state in
      state.table.object(Self.word(key), key.reference.key).flatMap(Self.retained)
    }
  }

  /// Enters an object under its key, which must not change until it is removed.
  func insert(_ object: NSManagedObject) {
    object.registry = self
    let address = UnsafeRawPointer(Unmanaged.passUnretained(object).toOpaque())
    state.withLock { state in
      _ = state.table.insert(address, Self.word(object.key), object.key.reference.key)
    }
  }

  /// Enters objects under their keys.
  func insert(_ objects: [NSManagedObject]) {
    for object in objects { object.registry = self }
    state.withLock { state in
      state.table.reserve(objects.count)
      for object in objects {
        let address = UnsafeRawPointer(Unmanaged.passUnretained(object).toOpaque())
        _ = state.table.insert(address, Self.word(object.key), object.key.reference.key)
      }
    }
  }

  func reserveCapacity(_ more: Int) {
    state.withLock { $0.table.reserve(more) }
  }

  func remove(_ key: ObjectKey) {
    state.withLock { state in
      _ = state.table.remove(Self.word(key), key.reference.key)
    }
  }

  /// Called by an object that nobody holds any more, on any thread.
  func objectGoes(_ object: NSManagedObject) {
    let address = UnsafeRawPointer(Unmanaged.passUnretained(object).toOpaque())
    let key = object.key
    state.withLock { state in
      // Another object may have the key already.
      _ = state.table.remove(Self.word(key), key.reference.key, ifHolding: address)
    }
  }

  func removeAll() {
    state.withLock { $0.table.removeAll() }
  }

  /// The objects that are alive.
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

  /// The object at an address of the table, unless it is going.
  @inline(__always)
  private static func retained(_ address: UnsafeRawPointer) -> NSManagedObject? {
    guard let held = swift_tryRetain(UnsafeMutableRawPointer(mutating: address)) else { return nil }
    return Unmanaged<NSManagedObject>.fromOpaque(held).takeRetainedValue()
  }
}
