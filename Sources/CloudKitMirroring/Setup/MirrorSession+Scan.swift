import Foundation
import OpenCoreData
import WatershedSQLite

extension MirrorSession {
  /// Compares the objects whose changes the history lacks, `limit` at a time: those that were in
  /// the store before the mirroring, and all of them if history was lost.
  ///
  /// Returns whether more is left. After a restart it continues after the last commit.
  package func scan(limit: Int) throws -> Bool {
    if try metadata.integer(.scanFinished) == 1 { return false }
    let names = mapping.entityNames.filter { name in
      mapping.entity(named: name).map { !$0.layout.entity.isAbstract } ?? false
    }
    var (entityName, key) = try scanPosition() ?? (names.first ?? "", 0)
    guard try foldBeforeScan(entityName, key, limit: limit) else { return true }
    if entityName == Self.neverSent {
      guard let next = try trustNeverSent(after: key, limit: limit) else { return try endScan() }
      try metadata.setMeta(.scanPosition, .text("\(next) \(Self.neverSent)"))
      return true
    }
    guard let entity = mapping.entity(named: entityName) else { return try endScan() }
    let group = try rows.lastTransactionNumber()
    let references = try rows.references(entityName: entityName, after: key, limit: limit)
    let known = try references.map { try metadata.record(entity: entityName, key: $0.key) }
    let unnamed = zip(references, known).filter { $0.1 == nil }.map(\.0.key)
    var insertions: [Int64: RowInsertion] = [:]
    if let first = unnamed.first, let last = unnamed.last {
      try metadata.indexInsertions()
      insertions = try rows.insertions(entityName: entityName, keys: first...last)
    }
    let openings = try openings()
    for (reference, known) in zip(references, known) {
      key = reference.key
      if let known {
        try compareWithBase(known, reference, entity, group: group)
      } else {
        let insertion = insertions[key].map { openings.named($0) }
        try noteInsert(reference, entity, insertion: insertion, group: group)
      }
    }
    try forgetMissing(
      entityName,
      after: try scanPosition()?.key ?? 0,
      through: references.count == limit ? key : .max,
      present: Set(references.map(\.key)),
      group: group
    )
    if references.count < limit {
      // The next entity follows; after the last one, all objects and their links have record names.
      entityName = names.first { $0 > entityName } ?? Self.neverSent
      key = 0
    }
    try metadata.setMeta(.scanPosition, .text("\(key) \(entityName)"))
    return true
  }

  /// Folds the history as far as the next part of a scan needs it, up to `limit` changes; returns whether it is
  /// folded that far.
  private func foldBeforeScan(_ entityName: String, _ key: Int64, limit: Int) throws -> Bool {
    let isMigrated = try metadata.integer(.readsWithNewModel) == 1
    guard try metadata.text(.scanPosition) != nil else {
      // A change in the history is an edit even if its value equals a default.
      if try metadata.integer(.historyTransaction) != nil {
        guard try foldHistory(limit: limit).isComplete else { return false }
        // The deletions folded here were made before the migration, so they can no longer be undone.
        if isMigrated { try metadata.forgetUnsentKeys() }
      }
      // Later saves are in the history.
      try setFolded(HistoryPosition(transaction: try rows.lastTransactionNumber()))
      return true
    }
    // Objects that the app deleted since the scan began are deletions; a migration dropped the others that are
    // missing.
    guard try (entityName == Self.neverSent && key == 0) || (isMigrated && !hasHistoryGap()) else {
      return true
    }
    return try foldHistory(limit: limit).isComplete
  }

  /// The position of a scan after its last entity; no entity can have the name.
  private static let neverSent = "~"

  /// Requests another scan, because the history has a gap.
  package func requestScan() throws {
    try metadata.setMeta(.scansGap, .integer(1))
    try metadata.setMeta(.scanFinished, nil)
    try metadata.setMeta(.scanPosition, nil)
  }

  /// Whether a scan that a gap of the history has requested is not complete.
  func hasGapToScan() throws -> Bool { try metadata.integer(.scansGap) == 1 }

  /// Has the rest of a scan make the values of objects that were never sent their base, after an
  /// identifier.
  func continueTrusting(after id: Int64) throws {
    try metadata.setMeta(.scanFinished, nil)
    try metadata.setMeta(.scanPosition, .text("\(id) \(Self.neverSent)"))
  }

  private func endScan() throws -> Bool {
    try metadata.setMeta(.scanFinished, .integer(1))
    try metadata.setMeta(.scanPosition, nil)
    try metadata.setMeta(.scansGap, nil)
    try metadata.dropInsertionIndex()
    return false
  }

  private func scanPosition() throws -> (entity: String, key: Int64)? {
    guard let text = try metadata.text(.scanPosition) else { return nil }
    let parts = text.split(separator: " ", maxSplits: 1)
    guard parts.count == 2, let key = Int64(parts[0]) else { return nil }
    return (String(parts[1]), key)
  }

  /// Differences from the last agreed copy are edits made while the mirroring was not running.
  private func compareWithBase(
    _ known: RecordMetadata,
    _ reference: RowReference,
    _ entity: EntityMapping,
    group: Int64
  ) throws {
    var known = known
    known.edges = Set(entity.manyToManys.map(\.name))
    guard let fields = try agreedOrSent(known), let row = try rows.row(reference) else {
      // The object was never sent, and is sent whole; links may be newer than its insertion.
      return try metadata.update(known)
    }
    let base = entity.reading(fields).fields
    let now = try serialize(row, entity)
    let waiting = try Set(metadata.links(of: known.name).map(\.property))
    let parked = try Set(
      entity.toOnes.filter { toOne in
        // Another device's link that is settled at the end of the feed is no edit: the row has the former one.
        if toOne.isOneToOne, waiting.contains(toOne.name) { return true }
        // A link that waits for its object is no edit.
        guard row.values[toOne.index].isNull else { return false }
        return try waiting.contains(toOne.name) || isAway(base[toOne.field])
      }.map(\.name)
    )
    let lost = try lookUpMissingFiles(of: row, known.name)
    let isMigrated = try metadata.integer(.readsWithNewModel) == 1
    var edited = entity.fieldProperties.filter { property in
      !parked.contains(property) && !lost.contains(property)
        && !now.fields.agrees(with: base, on: property)
        && !isDefault(property, row, entity, base, isMigrated: isMigrated)
    }
    // An object that the scan has not reached yet has no record name: a link to it is in no field,
    // but is an edit.
    edited += entity.toOnes.filter { toOne in
      !row.values[toOne.index].isNull && now.fields[toOne.field] == nil
    }.map(\.name)
    // The server may never have received a version between the record's and this one.
    if case .string(let name) = fields[MirrorNames.entityName], name != entity.entityName,
      isMigrated
    {
      edited.append(MirrorNames.entityName)
    }
    if known.pending == .nothing { known.group = group }
    if !edited.isEmpty {
      known.pending = .save
      known.properties.formUnion(edited)
    }
    try metadata.update(known)
  }

  /// The last agreed copy of a record; of one whose creation waits for its reply, the fields that were sent.
  ///
  /// Another version of the model sent them under its names: this version's names may be in no field.
  private func agreedOrSent(_ known: RecordMetadata) throws -> FieldBag? {
    if let base = known.base { return base }
    guard let open = try OpenOperations(metadata).operation(of: known), open.kind == .create else {
      return nil
    }
    return open.set
  }

  /// Whether a property has the value of a row that was never given the server's value: a default
  /// if the record has no field, or if its value has another type than the attribute.
  ///
  /// An attribute that a new version of the model added is not edited by that. A large value is nil
  /// where a migration by objects could not read its file.
  private func isDefault(
    _ property: String,
    _ row: Row,
    _ entity: EntityMapping,
    _ base: FieldBag,
    isMigrated: Bool
  ) -> Bool {
    guard let attribute = entity.attribute(property) else { return false }
    switch base.content(of: property) {
    case nil: return row.values[attribute.index] == attribute.defaultValue
    case .asset?, .fingerprint?:
      return isMigrated && attribute.form == .data && row.values[attribute.index].isNull
    case let value?: return attribute.rowValue(value) == nil
    }
  }

  private func isAway(_ value: MirrorValue?) throws -> Bool {
    guard case .string(let name) = value else { return false }
    return try reference(named: name) == nil
  }

  /// Handles the records of the scanned range whose objects no longer exist.
  private func forgetMissing(
    _ entityName: String,
    after start: Int64,
    through end: Int64,
    present: Set<Int64>,
    group: Int64
  ) throws {
    var position = start
    let isMigrated = try metadata.integer(.readsWithNewModel) == 1
    while true {
      let records = try metadata.records(entity: entityName, after: position, limit: 500)
      for record in records {
        guard let key = record.key, key <= end else { return }
        position = key
        guard !present.contains(key) else { continue }
        if isMigrated {
          // The migration dropped the object; a deletion would be in the history.
          var record = record
          record.key = nil
          try metadata.update(record)
        } else {
          try forget(record, group: group)
        }
      }
      if records.count < 500 { return }
    }
  }
}
