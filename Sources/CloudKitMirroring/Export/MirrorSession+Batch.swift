import Foundation
import OpenCoreData

extension MirrorSession {
  /// A pending change, with the operation that a request would send for it.
  private struct Candidate {
    enum Subject {
      case record(RecordMetadata)
      case edge(EdgeMetadata)
    }

    var subject: Subject
    var operation: CloudOperation
    /// The contents of files by asset field; written only if the change becomes part of the batch.
    var fileContents: [String: Data] = [:]
    /// The edited properties that wait for files which are missing beside the store.
    var waiting: Set<String> = []

    /// The save that it belongs to, or a later one that it must not precede.
    var group: Int64

    init(_ record: RecordMetadata, _ operation: CloudOperation) {
      subject = .record(record)
      group = record.group
      self.operation = operation
    }

    init(_ edge: EdgeMetadata, _ operation: CloudOperation) {
      subject = .edge(edge)
      group = edge.group
      self.operation = operation
    }

    /// Objects come before the edges between them, and deletions in the reverse order.
    var rank: Int {
      switch (subject, operation.kind) {
      case (.record, .create), (.record, .update): 0
      case (.edge, .create), (.edge, .update): 1
      case (.edge, .delete): 2
      case (.record, .delete): 3
      }
    }
  }

  /// Assembles the next batch from pending changes and stores it in the metadata, so that the
  /// identical batch can be repeated; later changes belong to a later batch.
  ///
  /// For a full database it has only deletions, which free space for the rest. Nil if nothing is
  /// pending.
  package func assembleBatch(
    limits: ExportBatcher.Limits,
    deletionsOnly: Bool = false
  ) throws -> CloudBatch? {
    while true {
      let window = limits.operations + 1
      let (records, moves) = try pendingRecords(limit: window, deletionsOnly: deletionsOnly)
      let edges = try metadata.pendingEdges(limit: window, deletionsOnly: deletionsOnly)
      guard !records.isEmpty || !edges.isEmpty else { return nil }
      var candidates: [Candidate] = []
      let kinds = try fieldKinds()
      // The last save that was read, and later ones, may have more objects than were read.
      var cut = records.count < window ? nil : records.last?.group
      var inlineBytes = 0
      var fileBytes = 0
      for record in records {
        if inlineBytes > limits.bytes || fileBytes > limits.fileBytes {
          cut = record.group
          break
        }
        guard let candidate = try candidate(record, kinds) else { continue }
        inlineBytes += candidate.operation.byteCount
        fileBytes += candidate.fileContents.values.reduce(0) { $0 + $1.count }
        candidates.append(candidate)
      }
      candidates = behind(moves, candidates)
      for edge in edges where cut.map({ edge.group < $0 }) ?? true {
        if let candidate = try candidate(edge) { candidates.append(candidate) }
      }
      // None of the changes read so far needs an operation; read more.
      guard !candidates.isEmpty else { continue }
      let isComplete = cut == nil && edges.count < window
      return try commit(choose(candidates, isComplete: isComplete, limits: limits))
    }
  }

  /// Orders each deletion of an owner after the moves of its members, and omits it if one of them has no
  /// candidate.
  private func behind(
    _ moves: PendingMoves,
    _ candidates: [Candidate]
  ) -> [Candidate] {
    guard !moves.members.isEmpty else { return candidates }
    let groups = Dictionary(
      candidates.map { ($0.operation.name, $0.group) },
      uniquingKeysWith: { first, _ in first }
    )
    return candidates.compactMap { candidate in
      guard candidate.operation.kind == .delete, !candidate.operation.isEdge,
        let members = moves.members[candidate.operation.name]
      else { return candidate }
      let others = members.compactMap { groups[$0] }
      guard others.count == members.count else { return nil }
      var later = candidate
      later.group = max(candidate.group, others.max() ?? 0)
      return later
    }
  }

  private func choose(
    _ candidates: [Candidate],
    isComplete: Bool,
    limits: ExportBatcher.Limits
  ) -> [Candidate] {
    var ordered = Array(candidates.enumerated())
    ordered.sort { left, right in
      (left.element.group, left.element.rank, left.offset)
        < (right.element.group, right.element.rank, right.offset)
    }
    let items = ordered.map { offset, candidate in
      ExportBatcher.Item(
        id: offset,
        group: candidate.group,
        bytes: candidate.operation.byteCount
      )
    }
    return ExportBatcher(limits: limits).firstBatch(of: items, isComplete: isComplete)
      .map { candidates[$0.id] }
  }

  private func candidate(_ record: RecordMetadata, _ kinds: FieldKinds) throws -> Candidate? {
    guard record.pending == .save else {
      guard record.tag != nil else {
        // As far as this store knows, the record never reached the server.
        try removeUnsent(record)
        return nil
      }
      return Candidate(
        record,
        CloudOperation(
          .delete,
          name: record.name,
          recordType: record.recordType,
          tag: record.tag
        )
      )
    }
    guard let entity = mapping.entity(named: record.entityName),
      let reference = reference(of: record), let row = try rows.row(reference)
    else {
      try holdBack(record)
      return nil
    }
    if try record.hasDoubtfulUpdate && metadata.isUnreadable(record.name) {
      return try waitForCopy(record)
    }
    let now = try serialize(row, entity, base: record.base)
    let changed: ChangedFields
    let waiting: Set<String>
    if record.tag != nil {
      waiting = record.properties.intersection(try lookUpMissingFiles(of: row, record.name))
      changed = ChangedFields(
        updating: now,
        base: record.base ?? FieldBag(),
        properties: record.properties.subtracting(waiting),
        mapping: entity
      )
    } else {
      waiting = record.properties.intersection(try rows.missingFiles(of: row))
      changed = ChangedFields(creating: now, base: record.base, mapping: entity)
    }
    guard record.tag == nil || !changed.isEmpty else {
      guard waiting.isEmpty else { return try waitForFiles(waiting, of: record) }
      // Edited and set back to the agreed value.
      var record = record
      record.pending = .nothing
      record.properties = []
      try metadata.update(record)
      return nil
    }
    let operation = CloudOperation(
      record.tag == nil ? .create : .update,
      name: record.name,
      recordType: record.recordType,
      tag: record.tag,
      set: FieldBag(kinds.adapted(changed.set, entity, recordType: record.recordType)),
      removed: changed.removed,
      encryptedKeys: now.encryptedKeys
    )
    var contents = now.fileContents.filter { changed.set[$0.key] != nil }
    for (former, present) in changed.formerFiles { contents[former] = now.fileContents[present] }
    var candidate = Candidate(record, operation)
    candidate.fileContents = contents
    candidate.waiting = waiting
    return candidate
  }

  /// Parks an edit of values whose files are missing beside the store: a backup may be restored in two steps, or
  /// the folder's volume may be mounted later.
  private func waitForFiles(_ waiting: Set<String>, of record: RecordMetadata) throws -> Candidate?
  {
    var record = record
    record.properties = waiting
    record.parked =
      "The files of these edited attributes are missing beside the store: "
      + "\(waiting.sorted().joined(separator: ", "))."
    try metadata.update(record)
    return nil
  }

  /// Parks an edit until the server's copy of the record can be read.
  ///
  /// That copy shows whether an update without a reply was executed. An edit back to the agreed value can be dropped
  /// only if it was not.
  private func waitForCopy(_ record: RecordMetadata) throws -> Candidate? {
    var record = record
    record.parked =
      "The server's copy of the record cannot be read now, and an earlier update had no reply."
    try metadata.update(record)
    return nil
  }

  /// Parks an edit whose object this store lacks, because a new model or a migration dropped it.
  ///
  /// Other devices have the object: only a deletion in the history is exported as one.
  private func holdBack(_ record: RecordMetadata) throws {
    guard record.tag != nil else { return try forgetWithoutName(record, group: record.group) }
    var record = record
    record.key = nil
    record.parked =
      "This store has no object of the entity \(record.entityName) for the record; its edit is parked."
    try metadata.update(record)
  }

  private func candidate(_ edge: EdgeMetadata) throws -> Candidate? {
    let isDeletion = edge.pending == .delete
    guard !isDeletion || edge.tag != nil else {
      try removeUnsent(edge)
      return nil
    }
    // An edge is never edited: saving one that has a tag means that it was deleted and created
    // again.
    return Candidate(
      edge,
      CloudOperation(
        isDeletion ? .delete : .create,
        name: edge.name,
        recordType: MirrorNames.edgeType,
        tag: isDeletion ? edge.tag : nil,
        set: isDeletion ? FieldBag() : edge.edge.fields,
        isEdge: true
      )
    )
  }

  private func commit(_ chosen: [Candidate]) throws -> CloudBatch {
    let sequence = try metadata.nextSequence()
    var operations: [CloudOperation] = []
    for candidate in chosen {
      var operation = candidate.operation
      for (key, contents) in candidate.fileContents.sorted(by: { $0.key < $1.key }) {
        guard case .asset(var asset) = operation.set[key] else { continue }
        asset.file = try context.assets.write(contents)
        operation.set[key] = .asset(asset)
      }
      operations.append(operation)
      switch candidate.subject {
      case .record(var record):
        record.sentChange = SentChange(
          sequence: sequence,
          kind: record.pending,
          properties: record.properties.subtracting(candidate.waiting)
        )
        record.pending = candidate.waiting.isEmpty ? .nothing : .save
        record.properties = candidate.waiting
        try metadata.update(record)
      case .edge(var edge):
        edge.sentChange = SentChange(sequence: sequence, kind: edge.pending)
        edge.pending = .nothing
        try metadata.update(edge)
      }
    }
    let batch = CloudBatch(
      device: context.device,
      sequence: sequence,
      operations: operations
    )
    try metadata.keepBatch(sequence, batch.encoded)
    return batch
  }
}
