/// An object's to-many relationships, in two words.
///
/// Most relationships are read and never changed. So the members of an entity's first two are the
/// set that was read, and nothing else; relationships that need more get storages, which are linked
/// as a list.
struct ToManyMembers {
  /// The set of the relationship 0, or the address of the first storage with `storageBit`.
  private var first: UInt = 0
  /// The set of the relationship 1.
  private var second: UInt = 0

  /// Objects begin at multiples of 16, so the last bit of an address is free.
  private static let storageBit: UInt = 1

  /// The number of relationships of an entity whose sets can be kept without a storage.
  static let setCount = 2

  @inline(__always)
  var isEmpty: Bool { first | second == 0 }

  // MARK: Sets

  /// The members as they were read, where nothing else is known of the relationship.
  @inline(__always)
  func set(at index: Int) -> Set<NSManagedObject>? {
    let word = index == 0 ? first : index == 1 ? second : 0
    guard word & Self.storageBit == 0, let address = UnsafeRawPointer(bitPattern: word) else {
      return nil
    }
    // A set is the address of its storage, an object; `keep` has retained it.
    let storage = Unmanaged<AnyObject>.fromOpaque(address).takeUnretainedValue()
    return unsafeBitCast(storage, to: Set<NSManagedObject>.self)
  }

  @inline(__always)
  func hasSet(at index: Int) -> Bool {
    index == 0 ? first != 0 && !hasStorages : index == 1 && second != 0
  }

  /// Whether a set of the relationship can be kept.
  @inline(__always)
  func hasRoom(at index: Int) -> Bool { index < Self.setCount && !hasStorages }

  /// Keeps the members of a relationship for which there is room.
  @inline(__always)
  mutating func keep(_ set: consuming Set<NSManagedObject>, at index: Int) {
    let word = UInt(
      bitPattern: Unmanaged.passRetained(unsafeBitCast(set, to: AnyObject.self)).toOpaque()
    )
    // Consumed at once, so that the object keeps the only new reference to the set.
    _ = consume set
    let former = index == 0 ? first : second
    if index == 0 { first = word } else { second = word }
    Self.release(former)
  }

  private static func release(_ word: UInt) {
    guard let address = UnsafeRawPointer(bitPattern: word & ~storageBit) else { return }
    Unmanaged<AnyObject>.fromOpaque(address).release()
  }

  // MARK: Storages

  @inline(__always)
  var hasStorages: Bool { first & Self.storageBit != 0 }

  /// The first of the storages.
  @inline(__always)
  var storages: ToManyStorage? {
    guard hasStorages, let address = UnsafeRawPointer(bitPattern: first & ~Self.storageBit) else {
      return nil
    }
    return Unmanaged<ToManyStorage>.fromOpaque(address).takeUnretainedValue()
  }

  /// Puts a storage before the others; there must be no sets.
  mutating func insert(_ storage: ToManyStorage) {
    storage.next = storages
    let former = first
    first = UInt(bitPattern: Unmanaged.passRetained(storage).toOpaque()) | Self.storageBit
    Self.release(former)
  }

  /// Turns the sets into storages.
  mutating func makeStorages() {
    guard !hasStorages else { return }
    let sets = (0..<Self.setCount).map { set(at: $0) }
    removeAll()
    for (index, set) in sets.enumerated() {
      guard let set else { continue }
      insert(ToManyStorage(index: index, members: set))
    }
  }

  mutating func removeAll() {
    let (one, other) = (first, second)
    (first, second) = (0, 0)
    Self.release(one)
    Self.release(other)
  }
}
