import CloudKitWebServices

/// The expected contents of a record, as plain values.
struct ModelRecord: Hashable {
  struct Link: Hashable {
    var target: String
    var action: ReferenceAction
  }

  var tag: String
  var number: Int64?
  var link: Link?
  var parent: String?

  /// A record in a reply or a feed.
  init(_ record: RecordDictionary) {
    tag = record.recordChangeTag ?? ""
    if case .int64(let number)? = record.content("n") { self.number = number }
    if case .reference(let reference)? = record.content("to") {
      link = Link(target: reference.recordName, action: reference.action ?? .none)
    }
    parent = record.parent?.recordName
  }

  /// A link whose target must exist.
  var bindingLink: Link? { link.flatMap { $0.action == .none ? nil : $0 } }
}

/// One operation of a batch, in plain values.
struct ModelOperation: Hashable {
  enum LinkChange: Hashable {
    case keep
    case clear
    case set(ModelRecord.Link)
  }

  var type: RecordOperationType
  var name: String
  /// The tag that the client sends; nil if the operation needs none.
  var tag: String?
  var number: Int64 = 0
  var link = LinkChange.keep
  var parent: String?

  var isDelete: Bool { type == .delete || type == .forceDelete }

  var request: RecordOperation {
    guard !isDelete else { return .make(type, name, tag: tag, recordType: nil) }
    var fields: [String: FieldContent] = ["n": .int64(number)]
    switch link {
    case .keep: break
    case .clear: fields["to"] = .null
    case .set(let link):
      fields["to"] = .reference(ReferenceValue(recordName: link.target, action: link.action))
    }
    return .make(type, name, fields, tag: tag, parent: parent)
  }
}

/// The documented semantics of one zone's records, without storage, indexes, feeds or time.
struct ModelZone: Hashable {
  var records: [String: ModelRecord] = [:]
  /// Shares by the names of their records, with their roots.
  var shares: [String: ModelShare] = [:]

  struct ModelShare: Hashable {
    var root: String
    /// Whether the guest may accept; a participant who has left is no longer invited.
    var isInvited = true
    /// Whether the guest participates.
    var isJoined = false
  }

  /// Why a batch of one operation must fail; nil where it must succeed.
  func refusal(of operation: ModelOperation) -> ServerErrorCode? {
    let found = records[operation.name]
    switch operation.type {
    case .create: if found != nil { return .conflict }
    case .update, .replace, .delete:
      guard let found else { return .notFound }
      if found.tag != operation.tag { return .conflict }
    case .forceUpdate, .forceReplace, .forceDelete: break
    }
    if operation.isDelete {
      return isHeldBack(operation.name) ? .validatingReferenceError : nil
    }
    let after = draft(operation)
    let targets =
      [after.bindingLink?.target, found?.parent == after.parent ? nil : after.parent]
      .compactMap(\.self)
    let isThere = targets.allSatisfy { $0 == operation.name || records[$0] != nil }
    return isThere ? nil : .validatingReferenceError
  }

  /// The record after a save, with its former tag.
  private func draft(_ operation: ModelOperation) -> ModelRecord {
    let found = records[operation.name]
    let keepsFields = operation.type == .update || operation.type == .forceUpdate
    var record = ModelRecord(RecordDictionary(recordName: operation.name, recordType: nil))
    record.number = operation.number
    // A replacement without a parent keeps it, and the record stays in its share.
    record.parent = operation.parent ?? found?.parent
    switch operation.link {
    case .keep: record.link = keepsFields ? found?.link : nil
    case .clear: record.link = nil
    case .set(let link): record.link = link
    }
    return record
  }

  /// The records that a deletion deletes by DELETE_SELF references, including its own.
  func cascade(of name: String) -> Set<String> {
    var gone: Set<String> = [name]
    var rest = [name]
    while let target = rest.popLast() {
      for (source, record) in records
      where record.link == .init(target: target, action: .deleteSelf) {
        if gone.insert(source).inserted { rest.append(source) }
      }
    }
    return gone
  }

  /// Whether a remaining record has a VALIDATE reference to one that a deletion deletes.
  private func isHeldBack(_ name: String) -> Bool {
    guard records[name] != nil else { return false }
    let gone = cascade(of: name)
    return records.contains { source, record in
      guard let link = record.link, link.action == .validate else { return false }
      return gone.contains(link.target) && !gone.contains(source)
    }
  }

  // MARK: Replies

  /// Clients with our header get the exact code of a conflict.
  private static func code(_ error: ErrorDictionary) -> ServerErrorCode {
    error.serverErrorCode == .exists ? .conflict : error.serverErrorCode
  }

  /// Applies the reply to a batch; returns what is wrong with it.
  mutating func settle(
    _ operations: [ModelOperation],
    _ results: [ItemResult<RecordDictionary>],
    isAtomic: Bool
  ) -> [String] {
    let codes = results.map { $0.error.map(Self.code) }
    guard results.count == operations.count else { return ["\(results.count) results"] }
    var complaints: [String] = []
    if operations.count == 1, refusal(of: operations[0]) != codes[0] {
      let due = refusal(of: operations[0])
      complaints.append("due is \(due?.rawValue ?? "success"), not \(codes[0]?.rawValue ?? "it")")
    }
    if isAtomic, codes.contains(where: { $0 != nil }) {
      if codes.contains(nil) { complaints.append("an atomic batch was done in part") }
      if codes.allSatisfy({ $0 == .atomicError }) { complaints.append("nothing was at fault") }
      return complaints
    }
    var after = self
    let done = zip(operations, results).compactMap { operation, result in
      result.item.map { (operation, $0) }
    }
    // Deletions are checked after the saves of the batch.
    for (operation, item) in done where !operation.isDelete {
      complaints += after.save(operation, item, before: self)
    }
    for (operation, _) in done where operation.isDelete {
      complaints += after.delete(operation, before: self)
    }
    for (operation, code) in zip(operations, codes) where code != nil && code != .atomicError {
      if !isPlausible(code, of: operation, after) {
        complaints.append("\(operation.name): \(code?.rawValue ?? "") for no reason")
      }
    }
    complaints += after.dangling
    self = after
    return complaints
  }

  private mutating func save(
    _ operation: ModelOperation,
    _ item: RecordDictionary,
    before: ModelZone
  ) -> [String] {
    var complaints = before.tagComplaints(operation)
    var record = before.draft(operation)
    record.tag = item.recordChangeTag ?? ""
    if record.tag.isEmpty || record.tag == before.records[operation.name]?.tag {
      complaints.append("\(operation.name) has no new tag")
    }
    records[operation.name] = record
    return complaints
  }

  private mutating func delete(_ operation: ModelOperation, before: ModelZone) -> [String] {
    if records[operation.name] != nil {
      for name in cascade(of: operation.name) { records[name] = nil }
      shares = shares.filter { records[$0.value.root] != nil }
    }
    return before.tagComplaints(operation)
  }

  private func tagComplaints(_ operation: ModelOperation) -> [String] {
    let found = records[operation.name]
    switch operation.type {
    case .create: return found == nil ? [] : ["\(operation.name) was created twice"]
    case .update, .replace, .delete:
      return found?.tag == operation.tag ? [] : ["\(operation.name): a stale tag won"]
    case .forceUpdate, .forceReplace, .forceDelete: return []
    }
  }

  /// Whether some order of the batch's operations explains a failure.
  private func isPlausible(
    _ code: ServerErrorCode?,
    of operation: ModelOperation,
    _ after: ModelZone
  ) -> Bool {
    let found = records[operation.name]
    switch code {
    case .conflict: return found != nil && found?.tag != operation.tag
    case .notFound: return found == nil
    case .validatingReferenceError:
      return operation.isDelete || operation.parent != nil || draft(operation).bindingLink != nil
    default: return false
    }
  }

  /// References with an action to missing records.
  private var dangling: [String] {
    records.compactMap { name, record in
      guard let link = record.bindingLink, records[link.target] == nil else { return nil }
      return "\(name) refers to \(link.target), which is gone"
    }
  }

  // MARK: Readers

  /// The records that the guest may see: the trees below the roots of shares in which they
  /// participate.
  var visibleToGuest: [String: ModelRecord] {
    let roots = Set(shares.values.filter(\.isJoined).map(\.root))
    return records.filter { name, _ in
      var next: String? = name
      while let name = next {
        if roots.contains(name) { return true }
        next = records[name]?.parent
      }
      return false
    }
  }
}
