import Crypto
import Effects
import Foundation
import OpenCoreData
import WatershedSQLite

/// Gives record names to objects, so that every copy of a store gives an object the same name.
///
/// A store that is restored from a backup may have objects that were named and sent only after the
/// backup was made. Random names would send them a second time, as other objects. A name is therefore
/// derived from what the copy and its original share, and rows that are inserted after the copy was
/// made do not: the opening of the store in which the row was inserted, and the history transaction
/// that inserted it, or else the row's contents.
extension MirrorSession {
  // MARK: Openings

  /// The store was opened: rows that are inserted from now on have names that no other copy of the
  /// store gives, regardless of its clock.
  package func noteOpening() throws {
    let last = try rows.lastTransactionNumber()
    let folded = try metadata.integer(.historyTransaction) ?? 0
    var openings = try self.openings()
    // A scan has taken transactions for folded whose rows it has not named yet.
    if try metadata.integer(.scanFinished) == 1 { openings.forget(upTo: folded) }
    openings.add(after: last, context.effects.uuid().uuidString)
    try metadata.setMeta(.openings, .text(openings.text))
  }

  /// The openings that the metadata has.
  func openings() throws -> StoreOpenings {
    StoreOpenings(try metadata.text(.openings) ?? "")
  }

  /// Whether pending edits of a record were saved before the present opening of the store, some of them
  /// at least.
  func isFromEarlierOpening(_ record: RecordMetadata) throws -> Bool {
    guard let opening = try openings().last else { return false }
    return record.group <= opening.after
  }

  // MARK: Names

  /// The name of a new record: that of its insertion, where the history has it, or of its contents.
  func newName(
    of reference: RowReference,
    _ entity: EntityMapping,
    _ insertion: NamedInsertion?
  ) throws -> String {
    guard let store = context.store, !context.effects.has(.randomNames) else {
      return context.effects.uuid().uuidString
    }
    // The object was deleted before it was sent, and an undo has inserted it again: it keeps its record name.
    if let former = try metadata.takeUnsent(entity: entity.entityName, key: reference.key),
      try metadata.record(named: former) == nil
    {
      return former
    }
    let parts: [String]
    if let insertion {
      // The name contains neither the entity nor the key, which a migration changes.
      let row = insertion.row
      parts = [
        insertion.opening, "\(row.transactionNumber)", "\(row.timestamp.bitPattern)",
        "\(row.changeNumber)",
      ]
    } else {
      guard let row = try rows.row(reference) else { return context.effects.uuid().uuidString }
      parts = [formerName(of: entity), "\(reference.key)", contentDigest(row, entity)]
    }
    let name = NameBasedUUID.make(namespace: store, name: parts.joined(separator: "\n")).uuidString
    // An object with the same contents may have had the key before.
    return try metadata.record(named: name) == nil ? name : context.effects.uuid().uuidString
  }

  /// A digest of the values that a row is mirrored with; a link counts by the key of its destination.
  ///
  /// It is the same under the next version of the model, which may add attributes with defaults and rename
  /// properties and entities.
  private func contentDigest(_ row: Row, _ entity: EntityMapping) -> String {
    let serializer = RecordSerializer(budget: AssetBudget(limit: .max))
    let fields = serializer.serialize(row.values, entity) { destination in
      rows.entityName(of: destination).flatMap(mapping.entity(named:)).map {
        "\(formerName(of: $0)) \(destination.key)"
      }
    }.fields.asBase
    var digested: [String: MirrorValue] = [:]
    for attribute in entity.attributes
    where row.values[attribute.index] != attribute.defaultValue {
      let name = entity.formerNames[attribute.name] ?? attribute.name
      digested[MirrorNames.field(name)] = fields[MirrorNames.field(attribute.name)]
      digested[MirrorNames.exactField(name)] = fields[MirrorNames.exactField(attribute.name)]
    }
    for toOne in entity.toOnes {
      let name = entity.formerNames[toOne.name] ?? toOne.name
      digested[MirrorNames.field(name)] = fields[toOne.field]
    }
    // Copies may differ in what is finer than a millisecond: other clients do not keep it.
    digested = digested.mapValues { value in
      guard case .date(let date) = value else { return value }
      return .date(MirrorDate(milliseconds: date.milliseconds))
    }
    return SHA256.hash(data: FieldBag(digested).encoded).map { String($0, radix: 16) }
      .joined(separator: ".")
  }

  private func formerName(of entity: EntityMapping) -> String {
    entity.layout.entity.renamingIdentifier ?? entity.entityName
  }

  // MARK: Copies

  /// Makes the present values of objects that were never sent their base, after an identifier.
  ///
  /// If the original of this copy has sent them since, the server's values are later than these, unless they
  /// are those of an earlier opening. Edits after this one win as usual. Returns where to continue, or nil at the end.
  func trustNeverSent(after id: Int64, limit: Int) throws -> Int64? {
    let records = try metadata.recordsUnconfirmed(after: id, limit: limit)
    for record in records where record.isNeverSent {
      guard let entity = mapping.entity(named: record.entityName),
        let reference = reference(of: record), let row = try rows.row(reference)
      else { continue }
      var record = record
      let base = try serialize(row, entity).fields.asBase
      guard record.base != base else { continue }
      if let former = record.base { try metadata.keepTrusted(former, of: record.name) }
      record.base = base
      try metadata.update(record)
    }
    return records.count == limit ? records.last?.id : nil
  }

  /// Makes the values that this opening finds the base of objects that were never sent.
  ///
  /// If nothing was saved since the last opening did so, the objects still have the same values: an app that
  /// is launched without a connection does not read them again.
  private func trustNeverSentAtOpening() throws {
    let last = try rows.lastTransactionNumber()
    let limit = Int(Self.foldedAtOpening)
    guard
      try metadata.integer(.trustedTransaction) != last || metadata.hasUntrusted(limit: limit)
    else { return }
    if let next = try trustNeverSent(after: 0, limit: limit) {
      try continueTrusting(after: next)
    }
    try metadata.setMeta(.trustedTransaction, .integer(last))
  }

  /// The number of changes in the history and of objects that the opening of a store handles.
  private static let foldedAtOpening: Int64 = 1000

  /// The number of changes that are not folded, counted up to a limit: a batch insert is one transaction with any
  /// number of them.
  private func countOfUnfolded(upTo limit: Int64) throws -> Int64 {
    let count = try rows.connection.scalar(
      "SELECT COUNT(*) FROM (SELECT 1 FROM ACHANGE AS c WHERE \(HistoryPosition.condition) LIMIT ?)",
      try foldedPosition().values + [.integer(limit)]
    )
    if case .integer(let number) = count { return number }
    return 0
  }

  /// Gives record names to objects that were saved before the opening, before the app can edit them.
  ///
  /// The setup continues with the objects beyond the limit of an opening.
  package func nameUnsent() throws {
    guard try metadata.integer(.scanFinished) == 1,
      try metadata.integer(.historyTransaction) != nil
    else { return }
    guard try countOfUnfolded(upTo: Self.foldedAtOpening + 1) <= Self.foldedAtOpening else {
      return try continueTrusting(after: 0)
    }
    try foldHistory()
    try trustNeverSentAtOpening()
    // Links get edges too, so that a deletion in the feed finds them.
    _ = try compareEdges(limit: Int(Self.foldedAtOpening))
    try metadata.noteUnsentEdges()
  }
}
