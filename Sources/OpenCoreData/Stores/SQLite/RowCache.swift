import Synchronization

/// The rows that were last read or written, and the members of their to-many relationships, shared
/// by all contexts of a store.
///
/// Its size is limited by the memory of its contents: at the limit it evicts the entries that were
/// not used since the last eviction.
package final class RowCache: Sendable {
  private struct State: ~Copyable, @unchecked Sendable {
    // Unchecked: guarded by the mutex; the rows and lists are immutable.

    /// Addresses of rows' storages, each holding one retain count.
    var rows = AgingTable()
    /// The raw values of ``RowLinks``.
    var links = AgingTable()
    /// The bytes of the entries used since the tables were last aged, and of the others.
    var recentBytes = 0
    var olderBytes = 0
    /// Incremented by every commit: rows read at an older epoch are not inserted.
    var epoch = 0

    deinit {
      rows.forEach { RowCache.storage($0.content).release() }
      links.forEach { RowLinks(word: $0.content).release() }
    }

    @inline(__always)
    mutating func discount(_ bytes: Int, wasRecent: Bool) {
      if wasRecent { recentBytes -= bytes } else { olderBytes -= bytes }
    }

    /// Moves an old entry's bytes to those of recently used entries.
    @inline(__always)
    mutating func renew(_ bytes: Int) {
      olderBytes -= bytes
      recentBytes += bytes
    }
  }

  private let state = Mutex(State())
  private let byteLimit: Int
  /// Incremented whenever rows read earlier may be out of date.
  private let changeCount = Atomic<Int>(0)

  /// The bytes of an entry in the table, at its usual load factor.
  private static let entryBytes = 40

  /// The bytes that one fetch may insert, a quarter of the limit; more would evict all other rows.
  let bytesOfOneFetch: Int

  /// The limit in bytes fits about 100,000 rows of ten short values.
  package init(byteLimit: Int = 40 << 20) {
    self.byteLimit = byteLimit
    bytesOfOneFetch = byteLimit / 4
  }

  package var epoch: Int { state.withLock { $0.epoch } }

  /// The epoch for rows that must not be inserted.
  static let noEpoch = -1

  /// Changes whenever readers must read again: at commits, and where the app asks for fresh values.
  var age: Int { changeCount.load(ordering: .acquiring) }

  // MARK: Rows

  package func row(_ reference: RowReference) -> Row? {
    state.withLock { state in self.row(reference, &state) }
  }

  /// The cached row of each reference, or nil.
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

  /// The row storage whose address an entry of the rows' table is.
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

  /// Inserts rows that were read at an epoch, unless a commit has made the cache newer.
  package func insert(_ rows: some Collection<Row>, readAt epoch: Int) {
    guard !rows.isEmpty else { return }
    state.withLock { state in
      guard state.epoch == epoch else { return }
      state.rows.reserve(rows.count)
      for row in rows { insert(row, &state) }
    }
  }

  /// Inserts rows that were read at an epoch, some of which may be missing, unless a commit has
  /// made the cache newer.
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

  /// Releases a row that is no longer in the table.
  private func release(_ found: AgingTable.Found, _ state: inout State) {
    let row = Row(storage: Self.storage(found.content).takeRetainedValue())
    state.discount(row.byteCount + Self.entryBytes, wasRecent: found.isRecent)
  }

  /// Ages the tables when the recently used entries take half of the memory, and evicts the old
  /// entries when both together exceed the limit.
  private func turnOver(_ state: inout State) {
    let isHalf = state.olderBytes == 0 && state.recentBytes > byteLimit / 2
    guard isHalf || state.recentBytes + state.olderBytes > byteLimit else { return }
    state.rows.age { Self.storage($0).release() }
    state.links.age { RowLinks(word: $0).release() }
    state.olderBytes = state.recentBytes
    state.recentBytes = 0
  }

  // MARK: Relationships

  /// The extent to which the cache has a relationship's members.
  package enum Knowledge {
    case nothing
    /// Their references, but not the rows of all of them.
    case members
    case rows
  }

  /// Appends the references of a to-many's members, with the rows that are cached.
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

  /// Stores the references of a to-many's members, and the rows that were read with them; members
  /// whose rows are cached refer to those.
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

  /// Releases links that are no longer in the table.
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

  /// Updates the cache with the rows that a commit wrote.
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
      // A refresh that the app asked for covers relationships as well as values.
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

  /// The bytes that the cache takes.
  package var byteCount: Int { state.withLock { $0.recentBytes + $0.olderBytes } }

  // MARK: Invariants

  /// All that is cached, as it was at one moment.
  struct Contents {
    var rows: [Row] = []
    var members: [(source: RowReference, index: Int, references: [RowReference])] = []
  }

  /// The cached rows and relationships, to be compared with the file.
  var contents: Contents {
    state.withLock { state in
      var contents = Contents()
      state.rows.forEachKey { _, _, found in
        contents.rows.append(Row(storage: Self.storage(found.content).takeUnretainedValue()))
      }
      state.links.forEachKey { word, key, found in
        let entity = Int32(truncatingIfNeeded: word)
        var references: [RowReference] = []
        RowLinks(word: found.content).forEach { references.append($0) }
        let source = RowReference(entityNumber: entity, key: key)
        contents.members.append((source, Int(word >> 32) - 1, references))
      }
      return contents
    }
  }

  /// The broken invariants of the cache alone, a sentence each.
  package func brokenInvariants() -> [String] {
    state.withLock { state in
      var broken = state.rows.brokenInvariants().map { "in the table of rows, \($0)" }
      broken += state.links.brokenInvariants().map { "in the table of members, \($0)" }
      var (recent, older) = (0, 0)
      func count(_ bytes: Int, _ found: AgingTable.Found) {
        if found.isRecent { recent += bytes } else { older += bytes }
      }
      state.rows.forEachKey { word, key, found in
        let row = Row(storage: Self.storage(found.content).takeUnretainedValue())
        count(row.byteCount + Self.entryBytes, found)
        if Self.word(row.reference) != word || row.reference.key != key {
          broken.append("the row of \(row.reference) is cached under another key")
        }
      }
      state.links.forEachKey { word, _, found in
        count(RowLinks(word: found.content).byteCount + Self.entryBytes, found)
        if word >> 32 == 0 { broken.append("members are cached under the key of a row") }
      }
      if recent != state.recentBytes || older != state.olderBytes {
        broken.append(
          "\(recent) recent and \(older) older bytes are cached, "
            + "\(state.recentBytes) and \(state.olderBytes) are counted"
        )
      }
      return broken
    }
  }
}
