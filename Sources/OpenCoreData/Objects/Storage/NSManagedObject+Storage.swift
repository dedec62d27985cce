import Synchronization

/// The object's memory in its compact and its full form; see ``ObjectWord``.
extension NSManagedObject {
  @inline(__always)
  final var current: ObjectWord { ObjectWord(bits: word.load(ordering: .acquiring)) }

  /// The body where there is one.
  @inline(__always)
  final var knownBody: UnsafeMutablePointer<ObjectBody>? {
    let current = current
    return current.isCompact ? nil : current.body
  }

  /// The body, made at the first call; on any thread.
  @inline(__always)
  final var body: UnsafeMutablePointer<ObjectBody> {
    let current = current
    return current.isCompact ? makeBody(current) : current.body
  }

  @inline(never)
  private final func makeBody(_ known: ObjectWord) -> UnsafeMutablePointer<ObjectBody> {
    let made = UnsafeMutablePointer<ObjectBody>.allocate(capacity: 1)
    var known = known
    while known.isCompact {
      made.initialize(to: ObjectBody(shared: known.shared, key: known.key, state: known.state))
      let (isDone, found) = word.compareExchange(
        expected: known.bits,
        desired: ObjectWord(body: made).bits,
        ordering: .acquiringAndReleasing
      )
      if isDone { return made }
      known = ObjectWord(bits: found)
    }
    // Another thread made the body first.
    made.deallocate()
    return known.body
  }

  /// Made at the first change.
  @inline(__always)
  final var work: UnsafeMutablePointer<ObjectWork> {
    let body = body
    return body.pointee.work ?? makeWork(body)
  }

  @inline(never)
  private final func makeWork(
    _ body: UnsafeMutablePointer<ObjectBody>
  ) -> UnsafeMutablePointer<ObjectWork> {
    let made = UnsafeMutablePointer<ObjectWork>.allocate(capacity: 1)
    made.initialize(to: ObjectWork())
    body.pointee.work = made
    return made
  }

  @inline(__always)
  final var knownWork: UnsafeMutablePointer<ObjectWork>? { knownBody?.pointee.work }

  // MARK: Life

  /// The first ``ObjectWord`` of a new object: without a context, and with a temporary key.
  static func firstWord(of template: ObjectTemplate) -> UInt {
    let key = ObjectKey.temporary().reference.key
    if template.detachedNumber > 0,
      let word = ObjectWord(sharedNumber: template.detachedNumber, magnitude: -key)
    {
      return word.bits
    }
    let body = UnsafeMutablePointer<ObjectBody>.allocate(capacity: 1)
    body.initialize(
      to: ObjectBody(shared: Unmanaged.passUnretained(template.detached), key: key, state: [])
    )
    return ObjectWord(body: body).bits
  }

  /// Turns an object that was just made into a fault of a row.
  final func becomeFault(of key: Int64, in shared: SharedObjectState) {
    if let known = knownBody {
      BodyDisposal.dispose(known)
    }
    let counted =
      shared.isPermanent ? Unmanaged.passUnretained(shared) : Unmanaged.passRetained(shared)
    if let fresh = ObjectWord(shared: shared, key: key, state: .fault) {
      word.store(fresh.bits, ordering: .releasing)
      return
    }
    let body = UnsafeMutablePointer<ObjectBody>.allocate(capacity: 1)
    body.initialize(to: ObjectBody(shared: counted, key: key, state: .fault))
    word.store(ObjectWord(body: body).bits, ordering: .releasing)
  }

  /// Called when the object is deallocated.
  final func letGo() {
    let current = current
    let shared = current.shared
    shared._withUnsafeGuaranteedRef { shared in
      shared.registry?.objectIsReleased(self, shared, current.key)
    }
    if !current.isCompact { BodyDisposal.dispose(current.body) }
    if !shared._withUnsafeGuaranteedRef({ $0.isPermanent }) { shared.release() }
  }

  /// Makes the object a fault that takes one word again, where it is as the store has it and
  /// nothing else is known of it.
  final func becomeCompact() {
    IdentifierLock.of(self).withLock {
      let current = current
      guard !current.isCompact else { return }
      let body = current.body
      let state = body.pointee.state
      guard state.isSubset(of: [.fault, .prefetched, .batched, .guarded]),
        body.pointee.identifier == nil, body.pointee.work == nil, body.pointee.toManys.isEmpty,
        body.pointee.toOneObjects.isEmpty, body.pointee.hasSnapshot
      else { return }
      let fault = state.subtracting(.prefetched).union([.fault, .batched])
      let word = body.pointee.shared._withUnsafeGuaranteedRef { shared in
        ObjectWord(shared: shared, key: body.pointee.key, state: fault)
      }
      guard let word else { return }
      self.word.store(word.bits, ordering: .releasing)
      BodyDisposal.dispose(body)
    }
  }

  // MARK: State

  final var state: ObjectState {
    @inline(__always)
    get { current.state }
    @inline(__always)
    set {
      var known = current
      while known.isCompact {
        var next = known
        next.state = newValue
        if next.bits == known.bits { return }
        let (isDone, found) = word.compareExchange(
          expected: known.bits,
          desired: next.bits,
          ordering: .acquiringAndReleasing
        )
        if isDone { return }
        known = ObjectWord(bits: found)
      }
      known.body.pointee.state = newValue
    }
  }

  /// The commit count of the coordinator when the attached row was read.
  final var rowGeneration: UInt32 {
    get { knownBody?.pointee.rowGeneration ?? 0 }
    set { body.pointee.rowGeneration = newValue }
  }

  /// The row as it was read or saved last.
  final var snapshot: Row? {
    @inline(__always)
    get { knownBody?.pointee.snapshot }
    @inline(__always)
    set {
      guard let newValue else {
        knownBody?.pointee.snapshot = nil
        return
      }
      body.pointee.snapshot = newValue
    }
  }

  /// Takes a row that a fetch brought along; the object stays a fault until it is read.
  final func attach(_ row: consuming Row, generation: UInt32) {
    let body = body
    body.pointee.attach(row)
    body.pointee.rowGeneration = generation
    body.pointee.state.insert(.prefetched)
  }

  /// Takes a row where nothing else is known of the object, and the row has all its values; else false.
  final func takeAsFirst(_ row: Row) -> Bool {
    let hasAll = templateReference._withUnsafeGuaranteedRef { $0.transientDefaults.isEmpty }
    guard hasAll else { return false }
    let body = body
    guard body.pointee.work == nil, body.pointee.toOneObjects.isEmpty,
      body.pointee.state.contains(.fault)
    else { return false }
    body.pointee.snapshot = row
    body.pointee.state.remove([.fault, .prefetched])
    return true
  }

  /// Uses the row that is attached to the fault, if it is as recent as the context and has all values, the class
  /// doesn't override `awakeFromFetch()` and the object has no observers; false where a fetch or more work is
  /// needed.
  final func takeAttachedRow() -> Bool {
    guard let body = knownBody, body.pointee.state.isSuperset(of: [.fault, .prefetched]),
      body.pointee.state.isDisjoint(with: [.batched, .observed]), body.pointee.hasSnapshot,
      body.pointee.work == nil, body.pointee.toOneObjects.isEmpty
    else { return false }
    return body.pointee.shared._withUnsafeGuaranteedRef { shared in
      guard let context = shared.context, context.generation == body.pointee.rowGeneration,
        shared.template.isWholeWithRow
      else { return false }
      body.pointee.state.remove([.fault, .prefetched])
      return true
    }
  }

  // MARK: Values

  /// The values by row index: attributes, then the references of to-ones.
  ///
  /// Empty while the snapshot has them; the first change unpacks them from it.
  final var ownValues: [RowValue] {
    get {
      if let body = knownBody {
        if let work = body.pointee.work, !work.pointee.ownValues.isEmpty {
          return work.pointee.ownValues
        }
        if body.pointee.hasSnapshot { return [] }
      }
      return state.contains(.fault) ? [] : template.defaults
    }
    set {
      if newValue.isEmpty {
        knownWork?.pointee.ownValues = []
      } else {
        work.pointee.ownValues = newValue
      }
    }
    _modify { yield &work.pointee.ownValues }
  }

  /// Sets a value where the object has its own; false where it has none.
  @inline(__always)
  final func setOwnValue(_ value: RowValue, at index: Int) -> Bool {
    guard let work = knownWork, !work.pointee.ownValues.isEmpty else { return false }
    work.pointee.ownValues[index] = value
    return true
  }

  /// All values by row index; none in a fault.
  ///
  /// One value is read with ``value(at:)``, which makes no array.
  final var values: [RowValue] {
    get {
      let own = ownValues
      if !own.isEmpty { return own }
      return state.contains(.fault) ? [] : snapshot?.values ?? []
    }
    set { ownValues = newValue }
    _modify {
      let work = work
      if work.pointee.ownValues.isEmpty, !state.contains(.fault) {
        work.pointee.ownValues = snapshot?.values ?? template.defaults
      }
      yield &work.pointee.ownValues
    }
  }

  /// The value at a row index of an object that is no fault.
  @inline(__always)
  final func value(at rowIndex: Int) -> RowValue {
    if let body = knownBody {
      if let work = body.pointee.work, !work.pointee.ownValues.isEmpty {
        return work.pointee.ownValues[rowIndex]
      }
      if let value = body.pointee.rowValue(at: rowIndex) { return value }
    }
    let own = ownValues
    // A fault that could not be read has none.
    return own.isEmpty ? .null : own[rowIndex]
  }

  /// To-one destinations that have been followed or set; empty until the first.
  final var toOneObjects: [NSManagedObject?] {
    get { knownBody?.pointee.toOneObjects ?? [] }
    set {
      if newValue.isEmpty {
        knownBody?.pointee.toOneObjects = []
      } else {
        body.pointee.toOneObjects = newValue
      }
    }
    _modify { yield &body.pointee.toOneObjects }
  }

  /// The objects behind transformable and untyped attributes.
  final var objectValues: [Int: Any]? {
    get { knownWork?.pointee.objectValues }
    set {
      if newValue != nil || knownWork != nil { work.pointee.objectValues = newValue }
    }
    _modify {
      if let known = knownWork {
        yield &known.pointee.objectValues
      } else {
        var values: [Int: Any]?
        yield &values
        if values != nil { work.pointee.objectValues = values }
      }
    }
  }
}
