import Synchronization

/// The values that all objects of one entity, from one store, in one context share.
///
/// An object refers to its home instead of holding each of these values itself; see
/// Documentation/Decisions/0027.
final class ObjectHome: @unchecked Sendable {
  // Sendable: all is constant but the context, which is used on its own lane.

  // Not counted, for speed: the template lives as long as its frozen model, as long as the process.
  let templateReference: Unmanaged<ObjectTemplate>
  let binding: StoreBinding?
  /// The context's table of objects by key; an object removes itself when it is deallocated.
  let registry: ObjectRegistry?
  /// The number of the ``StoreBinding``; 0 for objects without a row.
  let store: Int32
  let entityNumber: Int32
  // Not counted and not weak, for speed: the context clears it when it is deallocated.
  unowned(unsafe) private(set) var context: NSManagedObjectContext?
  /// Whether there is a context; reading it counts no reference.
  private(set) var hasContext: Bool
  private var twin: ObjectHome?
  /// The home's number in ``HomeTable``; 0 when the table was full.
  let number: Int
  /// Whether the home lives as long as the process.
  let isLasting: Bool

  init(
    template: ObjectTemplate,
    binding: StoreBinding?,
    store: Int32,
    entityNumber: Int32,
    context: NSManagedObjectContext?,
    isLasting: Bool = false
  ) {
    templateReference = Unmanaged.passUnretained(template)
    self.binding = binding
    self.store = store
    self.entityNumber = entityNumber
    self.context = context
    hasContext = context != nil
    self.isLasting = isLasting
    registry = context?.registry
    number = HomeTable.shared.takeNumber()
    HomeTable.shared.set(Unmanaged.passUnretained(self), at: number)
  }

  deinit {
    HomeTable.shared.giveBack(number)
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

  /// The home of the same store and entity without a context; called on the context's lane.
  func detached() -> ObjectHome {
    if store == 0 { return template.homeless }
    if let twin { return twin }
    let made = ObjectHome(
      template: template,
      binding: binding,
      store: store,
      entityNumber: entityNumber,
      context: nil
    )
    twin = made
    return made
  }
}

/// The homes of the process by small numbers.
///
/// A home is added when it is made and removed when its last object is deallocated, so any code
/// that holds an object may look its home up without a lock.
final class HomeTable: @unchecked Sendable {
  // Sendable: the mutex guards the free numbers; an entry is written before its number is
  // published.

  static let shared = HomeTable()

  /// The count of numbers that 15 bits can hold.
  private static let size = 1 << 15

  // Unsafe and beside `shared`, for speed: `shared` checks at each access whether it has been made,
  // and every fault looks its home up. It is set before the first home has a number, and never
  // changed afterwards; code that has a number received it after that.
  private nonisolated(unsafe) static var entries: UnsafeMutablePointer<Unmanaged<ObjectHome>?>?
  private let free = Mutex(Free())

  private struct Free {
    var numbers: [Int] = []
    /// 0 stands for no number.
    var next = 1
  }

  private init() {
    let entries = UnsafeMutablePointer<Unmanaged<ObjectHome>?>.allocate(capacity: Self.size)
    entries.initialize(repeating: nil, count: Self.size)
    Self.entries = entries
  }

  @inline(__always)
  static func home(_ number: Int) -> Unmanaged<ObjectHome> {
    guard let home = entries?[number] else {
      preconditionFailure("An object has outlived what it belongs to.")
    }
    return home
  }

  fileprivate func takeNumber() -> Int {
    free.withLock { free in
      if let number = free.numbers.popLast() { return number }
      guard free.next < Self.size else { return 0 }
      defer { free.next += 1 }
      return free.next
    }
  }

  fileprivate func set(_ home: Unmanaged<ObjectHome>, at number: Int) {
    if number > 0 { Self.entries?[number] = home }
  }

  fileprivate func giveBack(_ number: Int) {
    guard number > 0 else { return }
    Self.entries?[number] = nil
    free.withLock { $0.numbers.append(number) }
  }
}

/// The homes of one context.
struct ContextHomes {
  private(set) var all: [ObjectHome] = []
  /// The homes that were looked up last, by the last bits of the entity's number.
  private var recent = [Unmanaged<ObjectHome>?](repeating: nil, count: Self.recentCount)

  /// A power of two; most models have fewer entities.
  private static let recentCount = 64

  /// Of objects that have a row.
  @inline(__always)
  func stored(_ entityNumber: Int32, _ binding: StoreBinding) -> Unmanaged<ObjectHome>? {
    let home = recent[Int(entityNumber) & (Self.recentCount - 1)]
    let fits = home?._withUnsafeGuaranteedRef { home in
      home.entityNumber == entityNumber && home.binding === binding
    }
    return fits == true ? home : nil
  }

  mutating func home(
    _ template: ObjectTemplate,
    _ binding: StoreBinding?,
    store: Int32,
    entityNumber: Int32,
    in context: NSManagedObjectContext
  ) -> ObjectHome {
    // There are few, so comparing is as fast as a hash.
    for home in all
    where home.store == store && home.entityNumber == entityNumber && home.template === template
      && home.binding === binding
    {
      note(home)
      return home
    }
    let made = ObjectHome(
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

  private mutating func note(_ home: ObjectHome) {
    guard home.store != 0 else { return }
    recent[Int(home.entityNumber) & (Self.recentCount - 1)] = Unmanaged.passUnretained(home)
  }
}

extension NSManagedObjectContext {
  /// The home of objects with such keys.
  func home(
    _ template: ObjectTemplate,
    _ binding: StoreBinding?,
    store: Int32,
    entityNumber: Int32
  ) -> ObjectHome {
    homes.home(template, binding, store: store, entityNumber: entityNumber, in: self)
  }

  /// The home of a store's rows of an entity; nil where the model does not have it.
  @inline(__always)
  func home(of entityNumber: Int32, _ binding: StoreBinding) -> ObjectHome? {
    homeReference(of: entityNumber, binding)?.takeUnretainedValue()
  }

  /// The same, not counted: the context keeps it.
  @inline(__always)
  func homeReference(of entityNumber: Int32, _ binding: StoreBinding) -> Unmanaged<ObjectHome>? {
    homes.stored(entityNumber, binding) ?? makeHome(of: entityNumber, binding)
  }

  @inline(never)
  private func makeHome(
    of entityNumber: Int32,
    _ binding: StoreBinding
  ) -> Unmanaged<ObjectHome>? {
    binding.template(number: entityNumber).map { template in
      Unmanaged.passUnretained(
        home(template, binding, store: binding.number, entityNumber: entityNumber)
      )
    }
  }
}
