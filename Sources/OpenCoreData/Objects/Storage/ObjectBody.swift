/// The memory of an object that is more than an untouched fault.
///
/// It is plain memory that its object alone points to: no reference counts, no checks of exclusive
/// access. It is never copied, and ``letGo()`` must be called before it is deallocated.
struct ObjectBody {
  /// Retained and released by hand, unless it lives as long as the process.
  var shared: Unmanaged<SharedObjectState>
  var key: Int64
  var state: ObjectState
  /// The commit count of the coordinator when the attached row was read.
  var rowGeneration: UInt32 = 0
  /// Retained and released by hand, so that reading a value counts no reference.
  private var row: Unmanaged<RowStorage>?
  /// Guarded by the object's ``IdentifierLock``.
  var identifier: NSManagedObjectID?
  /// To-one destinations that have been read or set; empty until the first.
  var toOneObjects: [NSManagedObject?] = []
  var toManys = ToManyMembers()
  /// Allocated at the first change.
  var work: UnsafeMutablePointer<ObjectWork>?

  init(shared: Unmanaged<SharedObjectState>, key: Int64, state: ObjectState) {
    self.shared = shared
    self.key = key
    self.state = state
  }

  /// The row as it was read or saved last.
  var snapshot: Row? {
    @inline(__always)
    get { row.map { Row(storage: $0.takeUnretainedValue()) } }
    set {
      let former = row
      row = newValue.map { Unmanaged.passRetained($0.storage) }
      former?.release()
    }
  }

  /// Takes a row as the snapshot.
  @inline(__always)
  mutating func attach(_ snapshot: consuming Row) {
    let next = Unmanaged.passRetained(snapshot.storage)
    // Consumed at once, so that the object keeps the only new reference to the row.
    _ = consume snapshot
    let former = row
    row = next
    former?.release()
  }

  @inline(__always)
  var hasSnapshot: Bool { row != nil }

  /// The value of the row at an index; nil where there is no row.
  @inline(__always)
  func rowValue(at index: Int) -> RowValue? {
    row?._withUnsafeGuaranteedRef { $0.value(at: index) }
  }

  /// Releases what is retained by hand.
  mutating func letGo() {
    snapshot = nil
    toManys.removeAll()
  }
}

/// The memory of an object that was changed.
struct ObjectWork {
  /// The values by row index; empty while they are those of the snapshot or the entity's defaults.
  var ownValues: [RowValue] = []
  /// The objects behind transformable and untyped attributes.
  var objectValues: [Int: Any]?
  /// Row indexes of the properties that changed since the last save.
  var changed = SlotSet()
  var changedToManys = SlotSet()
  /// Row indexes of the properties that changed since the last turn.
  var changedInTurn = SlotSet()
  var changedToManysInTurn = SlotSet()
  /// The values at the end of the last turn, where the object had unsaved changes then.
  var former: FormerValues?
  /// Relationships that accessors of the app's own are changing.
  var announced: [AnnouncedRelationship] = []
  /// The position in the context's list of inserted, updated or deleted objects.
  var trackingIndex = -1
}

/// The single memory word that an object has.
///
/// An odd word is an untouched fault, or an object that was just made: it contains the number of
/// the object's shared state, its own state and its key. An even word is the address of its
/// ``ObjectBody``. A million faults take 32 bytes each this way.
struct ObjectWord {
  var bits: UInt

  @inline(__always)
  init(bits: UInt) {
    self.bits = bits
  }

  @inline(__always)
  init(body: UnsafeMutablePointer<ObjectBody>) {
    bits = UInt(bitPattern: body)
  }

  /// Nil where the key or the shared state's number doesn't fit in the word.
  @inline(__always)
  init?(shared: SharedObjectState, key: Int64, state: ObjectState) {
    let magnitude = shared.isTemporary ? -key : key
    guard shared.number > 0, magnitude >= 0, magnitude <= Int64(UInt32.max) else { return nil }
    bits = UInt(magnitude) << 32 | UInt(state.rawValue) << 16 | UInt(shared.number) << 1 | 1
  }

  /// Makes a word for an object that was just made; the number must be above 0.
  @inline(__always)
  init?(sharedNumber: Int, magnitude: Int64) {
    guard magnitude >= 0, magnitude <= Int64(UInt32.max) else { return nil }
    bits = UInt(magnitude) << 32 | UInt(sharedNumber) << 1 | 1
  }

  @inline(__always)
  var isCompact: Bool { bits & 1 != 0 }

  /// The body that an even word points to.
  @inline(__always)
  var body: UnsafeMutablePointer<ObjectBody> {
    guard let body = UnsafeMutablePointer<ObjectBody>(bitPattern: bits) else {
      preconditionFailure("An NSManagedObject was used before its initialization finished.")
    }
    return body
  }

  @inline(__always)
  var shared: Unmanaged<SharedObjectState> {
    isCompact ? SharedStateTable.shared(Int(bits >> 1 & 0x7FFF)) : body.pointee.shared
  }

  @inline(__always)
  var state: ObjectState {
    get {
      isCompact ? ObjectState(rawValue: UInt16(truncatingIfNeeded: bits >> 16)) : body.pointee.state
    }
    /// Sets the state bits of an odd word.
    set { bits = bits & ~(0xFFFF << 16) | UInt(newValue.rawValue) << 16 }
  }

  @inline(__always)
  var key: Int64 {
    guard isCompact else { return body.pointee.key }
    let magnitude = Int64(bits >> 32)
    return shared._withUnsafeGuaranteedRef { $0.isTemporary } ? -magnitude : magnitude
  }
}
