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

  /// Whom a to-many leads to, with the rows that are known; nil where that is not known.
  package func members(_ source: RowReference, toMany index: Int) -> [RowMember]? {
    state.withLock { state in
      let word = Self.word(source, index + 1)
      var found = state.young.links.object(word, source.key)
      if found == nil, let moved = state.old.links.remove(word, source.key) {
        let links = Unmanaged<RowLinks>.fromOpaque(moved).takeRetainedValue()
        state.old.bytes -= links.byteCount + Self.entryBytes
        if links.header.epoch == state.linkEpoch { insert(links, word, source.key, &state) }
        found = state.young.links.object(word, source.key)
      }
      guard let found else { return nil }
      let links = Unmanaged<RowLinks>.fromOpaque(found).takeUnretainedValue()
      guard links.header.epoch == state.linkEpoch else { return nil }
      let count = links.header.count
      var members: [RowMember] = []
      members.reserveCapacity(count)
      for place in 0..<count {
        let reference = links.reference(at: place)
        members.append(RowMember(reference: reference, row: row(reference, &state)))
      }
      return members
    }
  }

  /// Keeps whom a to-many leads to, and the rows that were read with it.
  package func insert(
    _ members: [RowMember],
    of source: RowReference,
    toMany index: Int,
    fresh rows: some Collection<Row>,
    readAt epoch: Int
  ) {
    state.withLock { state in
      guard state.epoch == epoch else { return }
      insert(
        RowLinks.make(members, epoch: state.linkEpoch),
        Self.word(source, index + 1),
        source.key,
        &state
      )
      for row in rows { insert(row, &state) }
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
    state.withLock { state in
      // A staleness that the app asked for is about relationships as much as about values.
      state.linkEpoch += 1
      for reference in references { drop(reference, &state) }
    }
  }

  func removeAll() {
    state.withLock { state in
      state.epoch += 1
      state.linkEpoch += 1
      state.young = Generation()
      state.old = Generation()
    }
  }

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

  func reference(at place: Int) -> RowReference {
    withUnsafeMutablePointerToElements { $0[place] }
  }

  static func make(_ members: [RowMember], epoch: Int) -> RowLinks {
    let made = RowLinks.create(minimumCapacity: members.count) { _ in
      Header(epoch: epoch, count: members.count)
    }
    made.withUnsafeMutablePointerToElements { target in
      for place in members.indices { (target + place).initialize(to: members[place].reference) }
    }
    return unsafeDowncast(made, to: RowLinks.self)
  }
}
