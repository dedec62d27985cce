import Synchronization

/// The rows that were read or written last, and whom their to-many relationships lead to, shared by
/// all contexts of a store.
///
/// Two generations bound it by the memory that they take: when both are full the young one becomes
/// the old one, and what the old one held is forgotten unless it was asked for meanwhile.
package final class RowCache: Sendable {
  private struct Generation: ~Copyable {
    var rows = PointerTable()
    var links = PointerTable()
    var bytes = 0

    deinit {
      rows.forEach { Unmanaged<RowStorage>.fromOpaque($0).release() }
      links.forEach { Unmanaged<RowLinks>.fromOpaque($0).release() }
    }
  }

  private struct State: ~Copyable, @unchecked Sendable {
    // Unchecked: guarded by the mutex; what it holds is immutable.
    var young = Generation()
    var old = Generation()
    /// Grows with every commit: what a reader read before it is not kept.
    var epoch = 0
    /// Grows with every commit that changes relationships: what was kept of them before is void.
    var linkEpoch = 0
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

  @inline(__always)
  private func row(_ reference: RowReference, _ state: inout State) -> Row? {
    let word = Self.word(reference)
    if let found = state.young.rows.object(word, reference.key) {
      return Row(storage: Unmanaged<RowStorage>.fromOpaque(found).takeUnretainedValue())
    }
    guard let found = state.old.rows.remove(word, reference.key) else { return nil }
    let row = Row(storage: Unmanaged<RowStorage>.fromOpaque(found).takeRetainedValue())
    state.old.bytes -= row.byteCount + Self.entryBytes
    insert(row, &state)
    return row
  }

  /// Keeps rows that were read when the cache had this epoch; later ones may be newer than they are.
  package func insert(_ rows: some Collection<Row>, readAt epoch: Int) {
    guard !rows.isEmpty else { return }
    state.withLock { state in
      guard state.epoch == epoch else { return }
      state.young.rows.reserve(rows.count)
      for row in rows {
        if let former = state.old.rows.remove(Self.word(row.reference), row.reference.key) {
          let former = Unmanaged<RowStorage>.fromOpaque(former).takeRetainedValue()
          state.old.bytes -= Row(storage: former).byteCount + Self.entryBytes
        }
        insert(row, &state)
      }
    }
  }

  /// The same for rows some of which may be missing.
  func insert(_ rows: [Row?], readAt epoch: Int) {
    state.withLock { state in
      guard state.epoch == epoch else { return }
      state.young.rows.reserve(rows.count)
      for row in rows {
        guard let row else { continue }
        if !state.old.rows.isEmpty { drop(row.reference, &state) }
        insert(row, &state)
      }
    }
  }

  private func insert(_ row: Row, _ state: inout State) {
    let reference = row.reference
    let address = UnsafeRawPointer(Unmanaged.passRetained(row.storage).toOpaque())
    state.young.bytes += row.byteCount + Self.entryBytes
    if let former = state.young.rows.insert(address, Self.word(reference), reference.key) {
      let former = Unmanaged<RowStorage>.fromOpaque(former).takeRetainedValue()
      state.young.bytes -= Row(storage: former).byteCount + Self.entryBytes
    }
    turnOver(&state)
  }

  /// The first half goes to the old generation, and is dropped when both together are too large.
  private func turnOver(_ state: inout State) {
    let isHalf = state.old.bytes == 0 && state.young.bytes > byteLimit / 2
    guard isHalf || state.young.bytes + state.old.bytes > byteLimit else { return }
    var fresh = Generation()
    swap(&fresh, &state.young)
    swap(&fresh, &state.old)
  }

  private func drop(_ reference: RowReference, _ state: inout State) {
    let word = Self.word(reference)
    if let row = state.young.rows.remove(word, reference.key) {
      let row = Unmanaged<RowStorage>.fromOpaque(row).takeRetainedValue()
      state.young.bytes -= Row(storage: row).byteCount + Self.entryBytes
    }
    if let row = state.old.rows.remove(word, reference.key) {
      let row = Unmanaged<RowStorage>.fromOpaque(row).takeRetainedValue()
      state.old.bytes -= Row(storage: row).byteCount + Self.entryBytes
    }
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
      let word = Self.word(source, index + 1)
      var found = state.young.links.object(word, source.key)
      if found == nil, let moved = state.old.links.remove(word, source.key) {
        let links = Unmanaged<RowLinks>.fromOpaque(moved).takeRetainedValue()
        state.old.bytes -= links.byteCount + Self.entryBytes
        if links.header.epoch == state.linkEpoch { insert(links, word, source.key, &state) }
        found = state.young.links.object(word, source.key)
      }
      guard let found else { return .nothing }
      // Held, as a row that is looked up may push the links themselves out.
      let links = Unmanaged<RowLinks>.fromOpaque(found).takeUnretainedValue()
      return links.withUnsafeMutablePointers { header, references in
        guard header.pointee.epoch == state.linkEpoch else { return .nothing }
        var knowledge = Knowledge.rows
        for place in 0..<header.pointee.count {
          let reference = references[place]
          let row = row(reference, &state)
          if row == nil { knowledge = .members }
          members.append(RowMember(reference: reference, row: row))
        }
        return knowledge
      }
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
      insert(
        RowLinks.make(members[start...], epoch: state.linkEpoch),
        Self.word(source, index + 1),
        source.key,
        &state
      )
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
    let address = UnsafeRawPointer(Unmanaged.passRetained(links).toOpaque())
    state.young.bytes += links.byteCount + Self.entryBytes
    if let former = state.young.links.insert(address, word, key) {
      let former = Unmanaged<RowLinks>.fromOpaque(former).takeRetainedValue()
      state.young.bytes -= former.byteCount + Self.entryBytes
    }
    turnOver(&state)
  }

  // MARK: Changes

  /// Takes in what a commit wrote.
  package func commit(written: [Row], gone: [RowReference], changesLinks: Bool = true) {
    defer { grow() }
    state.withLock { state in
      state.epoch += 1
      if changesLinks { state.linkEpoch += 1 }
      state.young.rows.reserve(written.count)
      for row in written {
        // A row of version 1 is new: what could be known of it is no older than the transaction.
        if row.version > 1, !state.old.rows.isEmpty { drop(row.reference, &state) }
        insert(row, &state)
      }
      for reference in gone { drop(reference, &state) }
    }
  }

  func forget(_ references: [RowReference]) {
    defer { grow() }
    state.withLock { state in
      // A staleness that the app asked for is about relationships as much as about values.
      state.linkEpoch += 1
      for reference in references { drop(reference, &state) }
    }
  }

  func removeAll() {
    defer { grow() }
    state.withLock { state in
      state.epoch += 1
      state.linkEpoch += 1
      state.young = Generation()
      state.old = Generation()
    }
  }

  private func grow() { changeCount.wrappingAdd(1, ordering: .acquiringAndReleasing) }

  /// The memory that the cache takes.
  package var byteCount: Int { state.withLock { $0.young.bytes + $0.old.bytes } }
}

/// Whom one to-many relationship of one row leads to, in order.
final class RowLinks: ManagedBuffer<RowLinks.Header, RowReference> {
  struct Header {
    var epoch: Int
    var count: Int
  }

  var byteCount: Int { 32 + header.count * MemoryLayout<RowReference>.stride }

  static func make(_ members: ArraySlice<RowMember>, epoch: Int) -> RowLinks {
    let made = RowLinks.create(minimumCapacity: members.count) { _ in
      Header(epoch: epoch, count: members.count)
    }
    made.withUnsafeMutablePointerToElements { target in
      for (place, member) in members.enumerated() {
        (target + place).initialize(to: member.reference)
      }
    }
    return unsafeDowncast(made, to: RowLinks.self)
  }
}
