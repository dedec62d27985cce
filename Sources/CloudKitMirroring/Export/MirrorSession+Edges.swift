import Foundation
import OpenCoreData

extension MirrorSession {
  /// Compares changed many-to-many relationships with the edges in the metadata, for `limit`
  /// objects.
  ///
  /// The history records that a relationship changed, not which links: the metadata has the former
  /// ones. Returns whether more objects are left.
  package func compareEdges(limit: Int) throws -> Bool {
    let records = try metadata.recordsWithChangedEdges(limit: limit)
    for record in records {
      var record = record
      if let entity = mapping.entity(named: record.entityName),
        let reference = reference(of: record)
      {
        for name in record.edges.sorted() {
          guard let relationship = entity.manyToMany(name) else { continue }
          try compare(relationship, of: record, at: reference)
        }
      }
      record.edges = []
      try metadata.update(record)
    }
    return records.count == limit
  }

  private func compare(
    _ relationship: ManyToManyMapping,
    of record: RecordMetadata,
    at reference: RowReference
  ) throws {
    let linked = try rows.destinations(of: relationship.description, from: reference)
    var wanted: Set<Edge> = []
    for destination in linked {
      guard let other = try name(of: destination, group: record.group) else { continue }
      wanted.insert(
        Edge(
          relationship: relationship.edge,
          firstRecord: relationship.isFirst ? record.name : other,
          secondRecord: relationship.isFirst ? other : record.name
        )
      )
    }
    let tracked = try edgesInMetadata(relationship, of: record.name)
    for edge in tracked where edge.isLinked && !wanted.contains(edge.edge) {
      try forget(edge, group: try rows.lastTransactionNumber())
    }
    let known = Dictionary(grouping: tracked, by: \.edge)
    for edge in wanted.sorted(by: {
      ($0.firstRecord, $0.secondRecord) < ($1.firstRecord, $1.secondRecord)
    }) {
      try note(edge, known: known[edge] ?? [], group: record.group)
    }
  }

  /// In a relationship that is its own inverse an object may be on either side.
  private func edgesInMetadata(
    _ relationship: ManyToManyMapping,
    of record: String
  ) throws -> [EdgeMetadata] {
    var edges = try metadata.edges(
      of: record,
      relationship: relationship.name,
      isFirst: relationship.isFirst
    )
    if relationship.edge.isSymmetric {
      let others = try metadata.edges(
        of: record,
        relationship: relationship.name,
        isFirst: !relationship.isFirst
      )
      let found = Set(edges.map(\.id))
      edges += others.filter { !found.contains($0.id) }
    }
    return edges
  }

  private func note(_ edge: Edge, known: [EdgeMetadata], group: Int64) throws {
    if known.contains(where: { $0.isLinked && $0.pending != .delete }) { return }
    let name = edge.recordName(zone: context.zone)
    if var again = try known.first ?? metadata.edge(named: name) {
      // A migration by a mapping model keeps the former names of entities.
      again.edge = edge
      // Deleted and created again before the deletion was sent, or parked and linked by the user.
      again.isLinked = true
      again.parked = nil
      let isUnsent = again.tag == nil || again.sentKind == .delete
      again.pending = isUnsent ? .save : .nothing
      if again.pending == .save, again.group == 0 { again.group = group }
      return try metadata.update(again)
    }
    // An earlier link between both was removed before it was sent.
    _ = try metadata.takeUnsent(name)
    var made = EdgeMetadata(name: name, edge: edge)
    made.pending = .save
    made.group = group
    made.isLinked = true
    try metadata.insert(made)
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
