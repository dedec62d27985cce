import Synchronization

/// The rows that were read or written last, and whom their to-many relationships lead to, shared by
/// all contexts of a store.
///
/// It is bound by the memory that its contents take: when that is used up, it forgets what was not
/// asked for since it did so last.
package final class RowCache: Sendable {
  private struct State: ~Copyable, @unchecked Sendable {
    // Unchecked: guarded by the mutex; what it holds is immutable.

    /// Addresses of rows' storages, each counted once.
    var rows = AgingTable()
    /// The words of ``RowLinks``.
    var links = AgingTable()
    /// The memory of what was used since the tables aged last, and of what was not.
    var recentBytes = 0
    var olderBytes = 0
    /// Grows with every commit: what a reader read before it is not kept.
    var epoch = 0

    deinit {
      rows.forEach { RowCache.storage($0.content).release() }
      links.forEach { RowLinks(word: $0.content).release() }
    }

    @inline(__always)
    mutating func discount(_ bytes: Int, wasRecent: Bool) {
      if wasRecent { recentBytes -= bytes } else { olderBytes -= bytes }
    }

    /// What was old is in use again.
    @inline(__always)
    mutating func renew(_ bytes: Int) {
      olderBytes -= bytes
      recentBytes += bytes
    }
  }

  private let state = Mutex(State())
  private let byteLimit: Int
  /// Grows whenever what was read before may be old.
  private let changeCount = Atomic<Int>(0)

  /// What an entry takes in the table, at its usual load.
  private static let entryBytes = 40

  /// A fetch of more rows than fit in a quarter would push everything else out.
  let bytesOfOneFetch: Int

  /// So many bytes at most, whatever the rows look like: about 100,000 rows of ten short values.
  package init(byteLimit: Int = 40 << 20) {
    self.byteLimit = byteLimit
    bytesOfOneFetch = byteLimit / 4
  }

  package var epoch: Int { state.withLock { $0.epoch } }

  /// The epoch of rows that are not to be kept.
  static let noEpoch = -1

  /// Changes whenever readers should look anew: at commits, and where somebody asks for freshness.
  var age: Int { changeCount.load(ordering: .acquiring) }

  // MARK: Rows

  package func row(_ reference: RowReference) -> Row? {
    state.withLock { state in self.row(reference, &state) }
  }

  /// A row for each reference, nil where it is not known.
  func rows(_ references: [RowReference]) -> [Row?] {
    state.withLock { state in
      var result: [Row?] = []
      result.reserveCapacity(references.count)
      for reference in references { result.append(row(reference, &state)) }
      return result
    }
  }

  @inline(__always)
  private static func word(_ reference: RowReference, _ kind: Int = 0) -> UInt64 {
    UInt64(UInt32(bitPattern: reference.entityNumber)) | UInt64(UInt32(kind)) << 32
  }

  /// The storage that an entry of the rows' table is the address of.
  @inline(__always)
  private static func storage(_ content: UInt) -> Unmanaged<RowStorage> {
    guard let address = UnsafeRawPointer(bitPattern: content) else {
      preconditionFailure("The row cache has lost a row.")
    }
    return Unmanaged.fromOpaque(address)
  }

  @inline(__always)
  private func row(_ reference: RowReference, _ state: inout State) -> Row? {
    guard let found = state.rows.use(Self.word(reference), reference.key) else { return nil }
    let row = Row(storage: Self.storage(found.content).takeUnretainedValue())
    if !found.isRecent { state.renew(row.byteCount + Self.entryBytes) }
    return row
  }

  /// Keeps rows that were read when the cache had this epoch; later ones may be newer than they are.
  package func insert(_ rows: some Collection<Row>, readAt epoch: Int) {
    guard !rows.isEmpty else { return }
    state.withLock { state in
      guard state.epoch == epoch else { return }
      state.rows.reserve(rows.count)
      for row in rows { insert(row, &state) }
    }
  }

  /// The same for rows some of which may be missing.
  func insert(_ rows: [Row?], readAt epoch: Int) {
    state.withLock { state in
      guard state.epoch == epoch else { return }
      state.rows.reserve(rows.count)
      for row in rows {
        if let row { insert(row, &state) }
      }
    }
  }

  private func insert(_ row: Row, _ state: inout State) {
    let reference = row.reference
    let content = UInt(bitPattern: Unmanaged.passRetained(row.storage).toOpaque())
    state.recentBytes += row.byteCount + Self.entryBytes
    if let former = state.rows.insert(content, Self.word(reference), reference.key) {
      release(former, &state)
    }
    turnOver(&state)
  }

  private func drop(_ reference: RowReference, _ state: inout State) {
    if let row = state.rows.remove(Self.word(reference), reference.key) { release(row, &state) }
  }

  /// Lets go of a row that is no longer in the table.
  private func release(_ found: AgingTable.Found, _ state: inout State) {
    let row = Row(storage: Self.storage(found.content).takeRetainedValue())
    state.discount(row.byteCount + Self.entryBytes, wasRecent: found.isRecent)
  }

  /// What was used counts as old when it takes half of the memory, and what was old already goes
  /// when both together take too much.
  private func turnOver(_ state: inout State) {
    let isHalf = state.olderBytes == 0 && state.recentBytes > byteLimit / 2
    guard isHalf || state.recentBytes + state.olderBytes > byteLimit else { return }
    state.rows.age { Self.storage($0).release() }
    state.links.age { RowLinks(word: $0).release() }
    state.olderBytes = state.recentBytes
    state.recentBytes = 0
  }

  // MARK: Relationships

  /// What the cache knows of a relationship's members.
  package enum Knowledge {
    case nothing
    /// Whom it leads to, but not the rows of all.
    case members
    case rows
  }

  /// Adds whom a to-many leads to, with the rows that are known.
  package func appendMembers(
    _ source: RowReference,
    toMany index: Int,
    to members: inout [RowMember]
  ) -> Knowledge {
    state.withLock { state in
      guard let found = state.links.use(Self.word(source, index + 1), source.key) else {
        return .nothing
      }
      let links = RowLinks(word: found.content)
      if !found.isRecent { state.renew(links.byteCount + Self.entryBytes) }
      var knowledge = Knowledge.rows
      links.forEach { reference in
        let row = row(reference, &state)
        if row == nil { knowledge = .members }
        members.append(RowMember(reference: reference, row: row))
      }
      return knowledge
    }
  }

  /// Keeps whom a to-many leads to, and the rows that were read with it; members whose rows are
  /// cached get them.
  package func insert(
    _ members: inout [RowMember],
    from start: Int,
    of source: RowReference,
    toMany index: Int,
    readAt epoch: Int
  ) {
    state.withLock { state in
      guard state.epoch == epoch else { return }
      insert(RowLinks(members[start...]), Self.word(source, index + 1), source.key, &state)
      for place in start..<members.count {
        if let fresh = members[place].row {
          insert(fresh, &state)
        } else {
          members[place].row = row(members[place].reference, &state)
        }
      }
    }
  }

  private func insert(_ links: RowLinks, _ word: UInt64, _ key: Int64, _ state: inout State) {
    state.recentBytes += links.byteCount + Self.entryBytes
    if let former = state.links.insert(links.word, word, key) { release(links: former, &state) }
    turnOver(&state)
  }

  /// Lets go of links that are no longer in the table.
  private func release(links found: AgingTable.Found, _ state: inout State) {
    let links = RowLinks(word: found.content)
    state.discount(links.byteCount + Self.entryBytes, wasRecent: found.isRecent)
    links.release()
  }

  private func dropLinks(_ state: inout State) {
    guard state.links.count > 0 else { return }
    var links = AgingTable()
    swap(&links, &state.links)
    links.forEach { release(links: $0, &state) }
  }

  // MARK: Changes

  /// Takes in what a commit wrote.
  package func commit(written: [Row], gone: [RowReference], changesLinks: Bool = true) {
    defer { grow() }
    state.withLock { state in
      state.epoch += 1
      if changesLinks { dropLinks(&state) }
      state.rows.reserve(written.count)
      for row in written { insert(row, &state) }
      for reference in gone { drop(reference, &state) }
    }
  }

  func forget(_ references: [RowReference]) {
    defer { grow() }
    state.withLock { state in
      // A staleness that the app asked for is about relationships as much as about values.
      dropLinks(&state)
      for reference in references { drop(reference, &state) }
    }
  }

  func removeAll() {
    defer { grow() }
    state.withLock { state in
      let epoch = state.epoch
      state = State()
      state.epoch = epoch + 1
    }
  }

  private func grow() { changeCount.wrappingAdd(1, ordering: .acquiringAndReleasing) }

  /// The memory that the cache takes.
  package var byteCount: Int { state.withLock { $0.recentBytes + $0.olderBytes } }
}
