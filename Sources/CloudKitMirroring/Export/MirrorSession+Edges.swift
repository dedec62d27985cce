import OpenCoreData

/// How many links one write transaction may still compare and change.
///
/// An object may have a hundred thousand links: the number of objects alone does not limit a transaction.
private struct LinkBudget {
  /// The links that are read, in the store and in the metadata: SQLite compares them.
  var compared = 20_000
  /// The links that were added or removed, each of which takes some statements.
  var changed = 1_000

  var isSpent: Bool { compared <= 0 || changed <= 0 }
}

extension MirrorSession {
  /// Compares changed many-to-many relationships with the edges in the metadata, for at most `limit`
  /// objects.
  ///
  /// The history records that a relationship changed, not which links: the metadata has the former
  /// ones. Returns whether more objects or links are left.
  package func compareEdges(limit: Int) throws -> Bool {
    let records = try metadata.recordsWithChangedEdges(limit: limit)
    var budget = LinkBudget()
    for record in records {
      if budget.isSpent { return true }
      var record = record
      record.edges = try compareEdges(of: record, &budget)
      try metadata.update(record)
    }
    return records.count == limit || budget.isSpent
  }

  /// Compares the relationships of one object; returns those of which links are left to compare.
  private func compareEdges(
    of record: RecordMetadata,
    _ budget: inout LinkBudget
  ) throws -> Set<String> {
    guard let entity = mapping.entity(named: record.entityName),
      let reference = reference(of: record)
    else { return [] }
    var rest = record.edges
    for name in record.edges.sorted() {
      if let relationship = entity.manyToMany(name),
        let table = rows.links(of: relationship.description, from: reference)
      {
        let links = RecordLinks(table, of: reference.key, record.name, relationship)
        guard try compare(links, group: record.group, &budget) else { return rest }
      }
      rest.remove(name)
    }
    return rest
  }

  /// Returns whether all links of the relationship were compared.
  private func compare(
    _ links: RecordLinks,
    group: Int64,
    _ budget: inout LinkBudget
  ) throws -> Bool {
    while !budget.isSpent {
      let start = context.linkPosition[links]
      if start == nil { budget.compared -= try metadata.count(of: links) }
      var place = start ?? LinkPosition.Place()
      let isAtEnd = try compare(links, from: &place, group: group, &budget)
      context.linkPosition[links] = isAtEnd ? nil : place
      if isAtEnd, start == nil { return true }
    }
    return false
  }

  /// Compares the links after a place; returns whether the last one was compared.
  private func compare(
    _ links: RecordLinks,
    from place: inout LinkPosition.Place,
    group: Int64,
    _ budget: inout LinkBudget
  ) throws -> Bool {
    let limit = budget.changed
    let removed = try metadata.removedEdges(links, after: place.edge, limit: limit)
    for edge in removed {
      try forget(edge, group: try rows.lastTransactionNumber())
      place.edge = edge.id
      budget.changed -= 1
    }
    guard removed.count < limit else { return false }
    place.edge = .max
    while budget.changed > 0 {
      let limit = budget.changed
      let added = try metadata.addedLinks(links, after: place.link, limit: limit)
      for reference in added {
        place.link = reference.key
        guard let other = try name(of: reference, group: group) else { continue }
        let edge = links.edge(to: other)
        let known = try metadata.edges(like: edge).filter { $0.edge == edge }
        if try note(edge, known: known, group: group) { budget.changed -= 1 }
      }
      if added.count < limit { return true }
    }
    return false
  }

  /// Whether many-to-many links of an object were made or removed here and are not sent yet, compared or not.
  ///
  /// A link that went with the object at its other end is none of this object's edits.
  func hasUnsentLinks(_ record: RecordMetadata, _ reference: RowReference) throws -> Bool {
    let isUnsent = try metadata.unsentEdges(touching: record.name).contains { edge in
      let ends = [edge.edge.firstRecord, edge.edge.secondRecord]
      return try ends.allSatisfy { try metadata.record(named: $0)?.key != nil }
    }
    if isUnsent { return true }
    guard let entity = mapping.entity(named: record.entityName) else { return false }
    return try record.edges.contains { name in
      guard let relationship = entity.manyToMany(name),
        let table = rows.links(of: relationship.description, from: reference)
      else { return false }
      let links = RecordLinks(table, of: reference.key, record.name, relationship)
      return try !metadata.addedLinks(links, after: .min, limit: 1).isEmpty
        || !metadata.removedEdges(links, after: .min, limit: 1).isEmpty
    }
  }

  /// Notes that a link exists; returns false if that is known.
  private func note(_ edge: Edge, known: [EdgeMetadata], group: Int64) throws -> Bool {
    if known.contains(where: { $0.isLinked && $0.pending != .delete }) { return false }
    let name = edge.recordName(zone: context.zone)
    if var again = try known.first ?? metadata.edge(named: name) {
      // A migration by a mapping model keeps the former names of entities.
      again.edge = edge
      // The link was deleted and created again before the deletion was sent, or parked and linked by the user.
      again.isLinked = true
      again.parked = nil
      let isUnsent = again.tag == nil || again.sentKind == .delete
      again.pending = isUnsent ? .save : .nothing
      if again.pending == .save, again.group == 0 { again.group = group }
      try metadata.update(again)
      return true
    }
    // An earlier link between both was removed before it was sent.
    _ = try metadata.takeUnsent(name)
    var made = EdgeMetadata(name: name, edge: edge)
    made.pending = .save
    made.group = group
    made.isLinked = true
    try metadata.insert(made)
    return true
  }

  /// The record name of a destination; an object older than the mirroring gets one now.
  private func name(of reference: RowReference, group: Int64) throws -> String? {
    if let name = try recordName(of: reference) { return name }
    guard let entityName = rows.entityName(of: reference),
      let entity = mapping.entity(named: entityName)
    else { return nil }
    let insertion = try insertion(of: reference, entity, openings())
    return try noteInsert(reference, entity, insertion: insertion, group: group).name
  }
}
