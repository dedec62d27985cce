import Synchronization

/// What an object knows of itself, wherever it is kept; see ``ObjectWord``.
extension NSManagedObject {
  @inline(__always)
  private final var current: ObjectWord { ObjectWord(bits: word.load(ordering: .acquiring)) }

  /// The body where there is one.
  @inline(__always)
  private final var knownBody: UnsafeMutablePointer<ObjectBody>? {
    let current = current
    return current.isCompact ? nil : current.body
  }

  /// The body, made at the first call; on any thread.
  @inline(__always)
  private final var body: UnsafeMutablePointer<ObjectBody> {
    let current = current
    return current.isCompact ? makeBody(current) : current.body
  }

  @inline(never)
  private final func makeBody(_ known: ObjectWord) -> UnsafeMutablePointer<ObjectBody> {
    let made = UnsafeMutablePointer<ObjectBody>.allocate(capacity: 1)
    var known = known
    while known.isCompact {
      made.initialize(to: ObjectBody(home: known.home, key: known.key, state: known.state))
      let (isDone, found) = word.compareExchange(
        expected: known.bits,
        desired: ObjectWord(body: made).bits,
        ordering: .acquiringAndReleasing
      )
      if isDone { return made }
      known = ObjectWord(bits: found)
    }
    // Another thread, which asked for the identifier, was faster.
    made.deallocate()
    return known.body
  }

  /// Made at the first change.
  @inline(__always)
  private final var work: UnsafeMutablePointer<ObjectWork> {
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
  private final var knownWork: UnsafeMutablePointer<ObjectWork>? { knownBody?.pointee.work }

  // MARK: Life

  /// The word of an object that was just made: without a context, and with a temporary key.
  static func firstWord(of template: ObjectTemplate) -> UInt {
    let key = ObjectKey.temporary().reference.key
    if template.homelessNumber > 0,
      let word = ObjectWord(homeNumber: template.homelessNumber, magnitude: -key)
    {
      return word.bits
    }
    let body = UnsafeMutablePointer<ObjectBody>.allocate(capacity: 1)
    body.initialize(
      to: ObjectBody(home: Unmanaged.passUnretained(template.homeless), key: key, state: [])
    )
    return ObjectWord(body: body).bits
  }

  /// Makes an object that nobody knows yet a fault of a row.
  final func becomeFault(of key: Int64, in home: ObjectHome) {
    if let known = knownBody {
      Self.dispose(known)
    }
    let counted = home.isLasting ? Unmanaged.passUnretained(home) : Unmanaged.passRetained(home)
    if let fresh = ObjectWord(home: home, key: key, state: .fault) {
      word.store(fresh.bits, ordering: .releasing)
      return
    }
    let body = UnsafeMutablePointer<ObjectBody>.allocate(capacity: 1)
    body.initialize(to: ObjectBody(home: counted, key: key, state: .fault))
    word.store(ObjectWord(body: body).bits, ordering: .releasing)
  }

  /// Called when the object goes.
  final func letGo() {
    let current = current
    let home = current.home
    home._withUnsafeGuaranteedRef { home in
      home.registry?.objectGoes(self, home, current.key)
    }
    if !current.isCompact { Self.dispose(current.body) }
    if !home._withUnsafeGuaranteedRef({ $0.isLasting }) { home.release() }
  }

  private static func dispose(_ body: UnsafeMutablePointer<ObjectBody>) {
    if let work = body.pointee.work {
      work.deinitialize(count: 1)
      work.deallocate()
    }
    body.pointee.letGo()
    body.deinitialize(count: 1)
    body.deallocate()
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
      let word = body.pointee.home._withUnsafeGuaranteedRef { home in
        ObjectWord(home: home, key: body.pointee.key, state: fault)
      }
      guard let word else { return }
      self.word.store(word.bits, ordering: .releasing)
      Self.dispose(body)
    }
  }

  // MARK: Identity

  @inline(__always)
  final var template: ObjectTemplate { templateReference._withUnsafeGuaranteedRef { $0 } }

  /// What the object has in common with all others of its entity; not counted, for speed.
  @inline(__always)
  final var templateReference: Unmanaged<ObjectTemplate> {
    current.home._withUnsafeGuaranteedRef { $0.templateReference }
  }

  @inline(__always)
  final var binding: StoreBinding? { current.home._withUnsafeGuaranteedRef { $0.binding } }

  /// Whether the object is of a store.
  @inline(__always)
  final var hasBinding: Bool { current.home._withUnsafeGuaranteedRef { $0.binding != nil } }

  @inline(__always)
  final func isBound(to binding: StoreBinding) -> Bool {
    current.home._withUnsafeGuaranteedRef { $0.binding === binding }
  }

  @inline(__always)
  final var hasContext: Bool { current.home._withUnsafeGuaranteedRef { $0.hasContext } }

  final var key: ObjectKey {
    @inline(__always)
    get {
      let current = current
      return current.home._withUnsafeGuaranteedRef { home in
        ObjectKey(
          store: home.store,
          reference: RowReference(entityNumber: home.entityNumber, key: current.key)
        )
      }
    }
  }

  /// The context; it is set on its lane, and found out of it by nobody.
  final var context: NSManagedObjectContext? {
    @inline(__always)
    get { current.home._withUnsafeGuaranteedRef { $0.context } }
    set {
      let home = current.home.takeUnretainedValue()
      guard home.context !== newValue else { return }
      let next =
        newValue?.home(
          home.template,
          home.binding,
          store: home.store,
          entityNumber: home.entityNumber
        ) ?? home.detached()
      IdentifierLock.of(self).withLock { move(to: next, key: current.key) }
    }
  }

  /// Gives the object another key; its identifier is another one from now on.
  final func become(_ key: ObjectKey, _ binding: StoreBinding?) {
    let observers = observers
    observers?.willChange("objectID", .setting)
    defer { observers?.didChange("objectID", .setting) }
    let template = template
    let home =
      context?.home(
        template,
        binding,
        store: key.store,
        entityNumber: key.reference.entityNumber
      )
      ?? ObjectHome(
        template: template,
        binding: binding,
        store: key.store,
        entityNumber: key.reference.entityNumber,
        context: nil
      )
    IdentifierLock.of(self).withLock {
      move(to: home, key: key.reference.key)
      knownBody?.pointee.identifier = nil
    }
  }

  /// With the identifier's lock held.
  private final func move(to home: ObjectHome, key: Int64) {
    let former = current.home
    if !home.isLasting { _ = Unmanaged.passRetained(home) }
    if current.isCompact, let next = ObjectWord(home: home, key: key, state: state) {
      word.store(next.bits, ordering: .releasing)
    } else {
      let body = body
      body.pointee.home = Unmanaged.passUnretained(home)
      body.pointee.key = key
    }
    if !former._withUnsafeGuaranteedRef({ $0.isLasting }) { former.release() }
  }

  /// The object's identifier, temporary until the object is saved.
  ///
  /// It may be asked for on any thread.
  public final var objectID: NSManagedObjectID {
    IdentifierLock.of(self).withLock {
      let body = body
      if let identifier = body.pointee.identifier { return identifier }
      let made = NSManagedObjectID(key: key, binding: binding, template: template)
      body.pointee.identifier = made
      return made
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
    body.pointee.snapshot = row
    body.pointee.rowGeneration = generation
    body.pointee.state.insert(.prefetched)
  }

  /// Takes a row where nothing else is known of the object; false where something is.
  final func takeAsFirst(_ row: Row) -> Bool {
    let body = body
    guard body.pointee.work == nil, body.pointee.toOneObjects.isEmpty,
      body.pointee.state.contains(.fault)
    else { return false }
    body.pointee.snapshot = row
    body.pointee.state.remove([.fault, .prefetched])
    return true
  }

  /// Takes the row that is attached, where it is as good as new and nobody wants to be told; false
  /// where there is more to do.
  final func takeAttachedRow() -> Bool {
    guard let body = knownBody, body.pointee.state.isSuperset(of: [.fault, .prefetched]),
      !body.pointee.state.contains(.batched), body.pointee.hasSnapshot, body.pointee.work == nil,
      body.pointee.toOneObjects.isEmpty
    else { return false }
    return body.pointee.home._withUnsafeGuaranteedRef { home in
      guard let context = home.context, context.generation == body.pointee.rowGeneration,
        !home.template.awakesFromFetch
      else { return false }
      body.pointee.state.remove([.fault, .prefetched])
      return true
    }
  }

  // MARK: Values

  /// By row index: attributes, then the references of to-ones.
  ///
  /// Empty while the snapshot has them: they are taken apart at the first change.
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
    return ownValues[rowIndex]
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

  // MARK: To-manys

  /// The members of a relationship that was read and of which nothing else is known.
  @inline(__always)
  final func readMembers(at index: Int) -> Set<NSManagedObject>? {
    knownBody?.pointee.toManys.set(at: index)
  }

  /// Whether a relationship's members can be kept as the set that was read.
  @inline(__always)
  final func hasRoomForMembers(at index: Int) -> Bool {
    knownBody?.pointee.toManys.hasRoom(at: index) ?? (index < ToManyMembers.setCount)
  }

  /// Keeps the members of a relationship as they were read; there must be room.
  @inline(__always)
  final func keepMembers(_ members: consuming Set<NSManagedObject>, at index: Int) {
    body.pointee.toManys.keep(members, at: index)
  }

  /// The relationship's storage where it has been touched.
  final func toManyStorage(ifTouched index: Int) -> ToManyStorage? {
    guard let body = knownBody, !body.pointee.toManys.isEmpty else { return nil }
    body.pointee.toManys.makeStorages()
    var storage = body.pointee.toManys.storages
    while let found = storage {
      if found.index == index { return found }
      storage = found.next
    }
    return nil
  }

  final func keep(_ storage: ToManyStorage) {
    let body = body
    body.pointee.toManys.makeStorages()
    body.pointee.toManys.insert(storage)
  }

  /// Whether a relationship's members are loaded.
  final func hasLoadedToMany(at index: Int) -> Bool {
    guard let body = knownBody else { return false }
    if !body.pointee.toManys.hasStorages { return body.pointee.toManys.hasSet(at: index) }
    return toManyStorage(ifTouched: index)?.isLoaded ?? false
  }

  /// Whether any to-many has a storage.
  @inline(__always)
  final var hasToManyStorages: Bool { knownBody?.pointee.toManys.hasStorages ?? false }

  /// Whether any to-many has been touched.
  final var hasToManys: Bool { knownBody.map { !$0.pointee.toManys.isEmpty } ?? false }

  /// Every to-many by its number; none until the first is touched.
  final var toManyStorages: [ToManyStorage?] {
    guard hasToManys else { return [] }
    return template.toManys.indices.map { toManyStorage(ifTouched: $0) }
  }

  /// Every to-many that has been touched, in no order.
  final func forEachToMany(_ body: (ToManyStorage) -> Void) {
    guard let known = knownBody, !known.pointee.toManys.isEmpty else { return }
    known.pointee.toManys.makeStorages()
    var storage = known.pointee.toManys.storages
    while let found = storage {
      storage = found.next
      body(found)
    }
  }

  final func dropToManys() {
    knownBody?.pointee.toManys.removeAll()
  }

  // MARK: Changes

  /// Notes what changed since the last save and in this turn.
  @inline(__always)
  final func markChanged(_ rowIndex: Int) {
    let work = work
    work.pointee.changed.insert(rowIndex)
    work.pointee.changedInTurn.insert(rowIndex)
  }

  final func markChanged(toMany index: Int) {
    let work = work
    work.pointee.changedToManys.insert(index)
    work.pointee.changedToManysInTurn.insert(index)
  }

  /// Forgets what changed in this turn.
  final func forgetTurn() {
    guard let work = knownWork else { return }
    work.pointee.changedInTurn.removeAll()
    work.pointee.changedToManysInTurn.removeAll()
  }

  /// Forgets all that changed.
  final func forgetChanges() {
    guard let work = knownWork else { return }
    work.pointee.changed.removeAll()
    work.pointee.changedToManys.removeAll()
    forgetTurn()
  }

  /// Forgets what changed, as it has been saved.
  ///
  /// The memory of it stays: given back, it would leave a hole beside each object of an import, and
  /// the next ones would be scattered over the holes.
  final func settleChanges() {
    guard let work = knownWork else { return }
    work.pointee.changed.removeAll()
    guard !work.pointee.changedToManys.isEmpty else { return }
    work.pointee.changedToManys.removeAll()
    forEachToMany { $0.commit() }
  }

  /// Row indexes of what changed since the last save.
  final var changed: SlotSet {
    get { knownWork?.pointee.changed ?? SlotSet() }
    set { if knownWork != nil || !newValue.isEmpty { work.pointee.changed = newValue } }
  }

  final var changedToManys: SlotSet {
    get { knownWork?.pointee.changedToManys ?? SlotSet() }
    set { if knownWork != nil || !newValue.isEmpty { work.pointee.changedToManys = newValue } }
  }

  /// Row indexes of what changed since the last turn.
  final var changedInTurn: SlotSet {
    get { knownWork?.pointee.changedInTurn ?? SlotSet() }
    set { if knownWork != nil || !newValue.isEmpty { work.pointee.changedInTurn = newValue } }
  }

  final var changedToManysInTurn: SlotSet {
    get { knownWork?.pointee.changedToManysInTurn ?? SlotSet() }
    set {
      if knownWork != nil || !newValue.isEmpty { work.pointee.changedToManysInTurn = newValue }
    }
  }

  /// The place in the context's list of inserted, updated or deleted objects.
  final var trackingIndex: Int {
    get { knownWork?.pointee.trackingIndex ?? -1 }
    set { if knownWork != nil || newValue >= 0 { work.pointee.trackingIndex = newValue } }
  }
}
