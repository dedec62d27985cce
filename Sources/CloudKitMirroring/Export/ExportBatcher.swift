/// Divides pending changes into requests.
///
/// The changes of one local save stay together if they fit, because a request is saved atomically.
package struct ExportBatcher: Sendable {
  /// The limits of one request.
  package struct Limits: Sendable {
    /// The web service's limit on operations.
    package static let operationLimit = 200
    /// Core Data's own limit, below the service's 2 MB.
    package static let byteLimit = 1_572_864

    /// The bytes of files that are read for one request: they are in memory while the store is locked.
    package static let fileByteLimit = 16 << 20

    package var operations: Int
    package var bytes: Int
    package var fileBytes: Int

    package init(
      operations: Int = operationLimit,
      bytes: Int = byteLimit,
      fileBytes: Int = fileByteLimit
    ) {
      self.operations = operations
      self.bytes = bytes
      self.fileBytes = fileBytes
    }
  }

  /// One pending change: the save it belongs to, and its size.
  package struct Item<ID: Hashable & Sendable>: Hashable, Sendable {
    package var id: ID
    package var group: Int64
    package var bytes: Int

    package init(id: ID, group: Int64, bytes: Int) {
      self.id = id
      self.group = group
      self.bytes = bytes
    }
  }

  package var limits: Limits

  package init(limits: Limits = Limits()) {
    self.limits = limits
  }

  /// The items of the first request; `items` are in the order of their groups.
  ///
  /// If `items` are not all pending items, the last group may be incomplete: it is sent with this
  /// request only if nothing else is.
  package func firstBatch<ID>(of items: [Item<ID>], isComplete: Bool) -> [Item<ID>] {
    var batch: [Item<ID>] = []
    var bytes = 0
    var start = 0
    while start < items.count {
      var end = start + 1
      while end < items.count, items[end].group == items[start].group { end += 1 }
      let group = items[start..<end]
      let isWhole = end < items.count || isComplete
      let groupBytes = group.reduce(0) { $0 + $1.bytes }
      if isWhole, batch.count + group.count <= limits.operations,
        bytes + groupBytes <= limits.bytes
      {
        batch += group
        bytes += groupBytes
        start = end
        continue
      }
      if batch.isEmpty { batch = prefix(of: group) }
      break
    }
    return batch
  }

  /// As many items of a group that is too large as fit; at least one item, regardless of its size.
  private func prefix<ID>(of group: ArraySlice<Item<ID>>) -> [Item<ID>] {
    var batch: [Item<ID>] = []
    var bytes = 0
    for item in group {
      let isFull = batch.count >= limits.operations || bytes + item.bytes > limits.bytes
      if isFull, !batch.isEmpty { break }
      batch.append(item)
      bytes += item.bytes
    }
    return batch
  }
}
