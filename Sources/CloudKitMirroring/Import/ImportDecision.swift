/// The decision about a record that is imported: how it changes the store's object and the metadata.
///
/// A function of the record, the metadata and the object: it reads and writes nothing.
package struct ImportDecision: Hashable, Sendable {
  package var merge: PropertyMerge
  /// The entries to add to the recovery list, before the object is changed.
  package var recoveries: [ImportRecovery] = []
  /// To-one relationships whose parked links are obsolete: the record has no link any more.
  package var removedLinks: [String] = []
  /// The properties that are sent again, because the service lost them.
  package var resent: Set<String> = []
  /// The edited properties that wait for files which are missing beside the store.
  package var waiting: Set<String> = []
  /// Whether the record was not pending before and has to be put into a group of changes.
  package var beginsSave = false
  /// The metadata after the import.
  package var metadata: RecordMetadata

  /// Decides about a record; `edits` are the properties with edits that the server has not confirmed.
  package init(_ incoming: IncomingRecord, _ local: LocalObject, edits: Set<String>) {
    let record = incoming.record
    let base = incoming.base
    // Agreed values that the service has lost are treated as edited here.
    let lost = incoming.lostProperties(local.fields)
    let omitted = incoming.omittedProperties(local.fields)
    let followed = incoming.followedProperties(since: local.trusted)
    var mergeBase = lost.isEmpty ? base : record.fields
    for property in omitted { mergeBase?.removeContent(of: property) }
    // The original of this copy has sent them as they were at an earlier opening.
    for property in followed { mergeBase?.copyContent(of: property, from: record.fields) }
    merge = PropertyMerge(
      properties: incoming.entity.fieldProperties,
      // A value whose file is missing here is not sent: another device's edit replaces it.
      pending: edits.union(lost).union(omitted).subtracting(local.missingFiles),
      doubtful: incoming.known.hasDoubtfulUpdate ? edits : [],
      base: mergeBase,
      server: record.fields,
      local: local.fields
    )
    // No other device has edited it: this one's edit may be in the file, which may be restored. A record that the
    // server lost has no known edits: all its values are sent again.
    waiting = local.missingFiles.intersection(incoming.isForgotten ? [] : edits).filter {
      mergeBase?.agrees(with: record.fields, on: $0) ?? (record.fields.content(of: $0) == nil)
    }
    merge.fromServer.subtract(waiting)
    metadata = incoming.confirmed
    resent = lost.union(omitted).intersection(merge.stillPending)
    let losses = Losses(lost: lost, omitted: omitted, followed: followed)
    recoveries = Self.recoveries(incoming, local, merge, losses)
    removedLinks = removedLinks(incoming, base)
    updateMetadata(incoming, isLost: !lost.isEmpty)
  }

  /// Properties whose agreed values the service's copy does not have.
  struct Losses {
    /// Properties that a restored server lost: its copy is older than the agreed one.
    var lost: Set<String>
    /// Properties that a re-created record does not have.
    var omitted: Set<String>
    /// Properties whose server value equals this store's value at an earlier opening.
    var followed: Set<String>
  }

  /// A link that waits for its object is nil here, as it is in the record from which it was removed.
  private func removedLinks(_ incoming: IncomingRecord, _ base: FieldBag?) -> [String] {
    incoming.entity.toOnes.filter { toOne in
      !toOne.isOneToOne && base?.content(of: toOne.name) != nil
        && incoming.record.fields.content(of: toOne.name) == nil
        && !merge.stillPending.contains(toOne.name)
    }.map(\.name)
  }

  private mutating func updateMetadata(_ incoming: IncomingRecord, isLost: Bool) {
    let known = incoming.known
    if isLost || (known.stamps.isOfLostCopy && !merge.conflicting.isEmpty) {
      metadata.stamps.modified = nil
    }
    let writesEntityName =
      known.properties.contains(MirrorNames.entityName)
      && incoming.newBase[MirrorNames.entityName] != .string(incoming.entity.entityName)
    metadata.properties = known.properties.intersection(merge.stillPending.union(waiting))
    if writesEntityName { metadata.properties.insert(MirrorNames.entityName) }
    if !resent.isEmpty, metadata.pending != .delete {
      beginsSave = metadata.pending == .nothing
      metadata.pending = .save
      metadata.properties.formUnion(resent)
    }
    // The object was restored while its deletion is being sent: `pending` keeps that until the reply arrives.
    if metadata.pending == .save, metadata.properties.isEmpty, metadata.sentKind != .delete {
      metadata.pending = .nothing
    }
    metadata.parked = nil
  }
}

/// An entry that an import adds to the recovery list.
package struct ImportRecovery: Hashable, Sendable {
  package enum Side: Hashable, Sendable {
    /// The server's values, which this device is about to replace: they may be edits.
    case server
    /// The values of this device's object, which the server's are about to replace.
    case device
  }

  package var side: Side
  package var properties: Set<String>
  package var reason: RecoveryReason

  package init(_ side: Side, _ properties: Set<String>, _ reason: RecoveryReason) {
    self.side = side
    self.properties = properties
    self.reason = reason
  }
}
