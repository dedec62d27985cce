import Synchronization

/// The values that all objects of one entity, from one store, in one context share.
///
/// An object refers to its shared state instead of holding each of these values itself; see
/// Documentation/Decisions/0027.
final class SharedObjectState: @unchecked Sendable {
  // Sendable: all is constant but the context, which is used on its own lane.

  // Unretained, for speed: the template lives as long as its frozen model, which is as long as the
  // process.
  let templateReference: Unmanaged<ObjectTemplate>
  let binding: StoreBinding?
  /// The context's table of objects by key; an object removes itself when it is deallocated.
  let registry: ObjectRegistry?
  /// The number of the ``StoreBinding``; 0 for objects without a row.
  let store: Int32
  let entityNumber: Int32
  // Unretained and not weak, for speed: the context clears it when it is deallocated.
  unowned(unsafe) private(set) var context: NSManagedObjectContext?
  /// Whether there is a context; reading it counts no reference.
  private(set) var hasContext: Bool
  private var detachedState: SharedObjectState?
  /// The shared state's number in ``SharedStateTable``; 0 when the table was full.
  let number: Int
  /// Whether the shared state lives as long as the process.
  let isPermanent: Bool

  init(
    template: ObjectTemplate,
    binding: StoreBinding?,
    store: Int32,
    entityNumber: Int32,
    context: NSManagedObjectContext?,
    isPermanent: Bool = false
  ) {
    templateReference = Unmanaged.passUnretained(template)
    self.binding = binding
    self.store = store
    self.entityNumber = entityNumber
    self.context = context
    hasContext = context != nil
    self.isPermanent = isPermanent
    registry = context?.registry
    number = SharedStateTable.shared.takeNumber()
    SharedStateTable.shared.set(Unmanaged.passUnretained(self), at: number)
  }

  deinit {
    SharedStateTable.shared.giveBack(number)
  }

  @inline(__always)
  var template: ObjectTemplate { templateReference._withUnsafeGuaranteedRef { $0 } }

  var isTemporary: Bool { store == 0 }

  /// Whether requests to the store carry the context, as for an `NSIncrementalStore`.
  @inline(__always)
  var isContextual: Bool { binding?.isContextual ?? false }

  /// The store's number and the entity's in one word.
  var word: UInt64 { Self.word(store, entityNumber) }

  @inline(__always)
  static func word(_ store: Int32, _ entityNumber: Int32) -> UInt64 {
    UInt64(UInt32(bitPattern: store)) << 32 | UInt64(UInt32(bitPattern: entityNumber))
  }

  /// Called when the context is deallocated.
  func leaveContext() {
    context = nil
    hasContext = false
  }

  /// The shared state of the same store and entity without a context; called on the context's lane.
  func detached() -> SharedObjectState {
    if store == 0 { return template.detached }
    if let detachedState { return detachedState }
    let made = SharedObjectState(
      template: template,
      binding: binding,
      store: store,
      entityNumber: entityNumber,
      context: nil
    )
    detachedState = made
    return made
  }
}

/// The shared states of the process by small numbers.
///
/// A shared state is added when it is made and removed when its last object is deallocated, so any
/// code that holds an object may look its shared state up without a lock.
final class SharedStateTable: @unchecked Sendable {
  // Sendable: the mutex guards the free numbers; an entry is written before its number is
  // published.

  static let shared = SharedStateTable()

  /// The count of numbers that 15 bits can hold.
  private static let size = 1 << 15

  // Unsafe and beside `shared`, for speed: `shared` checks at each access whether it has been made,
  // and every fault looks its shared state up. It is set before the first shared state has a
  // number, and never changed afterwards; code that has a number received it after that.
  private nonisolated(unsafe) static var entries:
    UnsafeMutablePointer<Unmanaged<SharedObjectState>?>?
  private let free = Mutex(Free())

  private struct Free {
    var numbers: [Int] = []
    /// 0 stands for no number.
    var next = 1
  }

  private init() {
    let entries = UnsafeMutablePointer<Unmanaged<SharedObjectState>?>.allocate(capacity: Self.size)
    entries.initialize(repeating: nil, count: Self.size)
    Self.entries = entries
  }

  @inline(__always)
  static func shared(_ number: Int) -> Unmanaged<SharedObjectState> {
    guard let shared = entries?[number] else {
      preconditionFailure("An object was used after its context and entity were released.")
    }
    return shared
  }

  fileprivate func takeNumber() -> Int {
    free.withLock { free in
      if let number = free.numbers.popLast() { return number }
      guard free.next < Self.size else { return 0 }
      defer { free.next += 1 }
      return free.next
    }
  }

  fileprivate func set(_ shared: Unmanaged<SharedObjectState>, at number: Int) {
    if number > 0 { Self.entries?[number] = shared }
  }

  fileprivate func giveBack(_ number: Int) {
    guard number > 0 else { return }
    Self.entries?[number] = nil
    free.withLock { $0.numbers.append(number) }
  }
}

/// The shared states of one context.
struct ContextSharedStates {
  private(set) var all: [SharedObjectState] = []
  /// The shared states that were looked up last, by the last bits of the entity's number.
  private var recent = [Unmanaged<SharedObjectState>?](repeating: nil, count: Self.recentCount)

  /// A power of two; most models have fewer entities.
  private static let recentCount = 64

  /// The shared state of an entity's objects that have a row in a store; nil if it is not among the
  /// recent ones.
  @inline(__always)
  func stored(_ entityNumber: Int32, _ binding: StoreBinding) -> Unmanaged<SharedObjectState>? {
    let shared = recent[Int(entityNumber) & (Self.recentCount - 1)]
    let fits = shared?._withUnsafeGuaranteedRef { shared in
      shared.entityNumber == entityNumber && shared.binding === binding
    }
    return fits == true ? shared : nil
  }

  mutating func shared(
    _ template: ObjectTemplate,
    _ binding: StoreBinding?,
    store: Int32,
    entityNumber: Int32,
    in context: NSManagedObjectContext
  ) -> SharedObjectState {
    // There are few, so comparing is as fast as a hash.
    for shared in all
    where shared.store == store && shared.entityNumber == entityNumber
      && shared.template === template
      && shared.binding === binding
    {
      note(shared)
      return shared
    }
    let made = SharedObjectState(
      template: template,
      binding: binding,
      store: store,
      entityNumber: entityNumber,
      context: context
    )
    all.append(made)
    note(made)
    return made
  }

  private mutating func note(_ shared: SharedObjectState) {
    guard shared.store != 0 else { return }
    recent[Int(shared.entityNumber) & (Self.recentCount - 1)] = Unmanaged.passUnretained(shared)
  }
}

extension NSManagedObjectContext {
  /// The shared state of objects with such keys.
  func shared(
    _ template: ObjectTemplate,
    _ binding: StoreBinding?,
    store: Int32,
    entityNumber: Int32
  ) -> SharedObjectState {
    sharedStates.shared(template, binding, store: store, entityNumber: entityNumber, in: self)
  }

  /// The shared state of a store's rows of an entity; nil where the model does not have it.
  @inline(__always)
  func shared(of entityNumber: Int32, _ binding: StoreBinding) -> SharedObjectState? {
    sharedReference(of: entityNumber, binding)?.takeUnretainedValue()
  }

  /// The shared state of a store's rows of an entity, without a reference count: the context keeps
  /// it.
  @inline(__always)
  func sharedReference(
    of entityNumber: Int32,
    _ binding: StoreBinding
  ) -> Unmanaged<SharedObjectState>? {
    sharedStates.stored(entityNumber, binding) ?? makeHome(of: entityNumber, binding)
  }

  @inline(never)
  private func makeHome(
    of entityNumber: Int32,
    _ binding: StoreBinding
  ) -> Unmanaged<SharedObjectState>? {
    binding.template(number: entityNumber).map { template in
      Unmanaged.passUnretained(
        shared(template, binding, store: binding.number, entityNumber: entityNumber)
      )
    }
  }
}
