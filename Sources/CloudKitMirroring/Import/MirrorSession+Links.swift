import Foundation
import OpenCoreData

extension MirrorSession {
  /// The destination of a many-to-one, or null if it has not been imported.
  func destination(_ toOne: ToOneMapping, in record: CloudRecord) throws -> RowValue {
    guard !toOne.isOneToOne else {
      try parkOneToOne(toOne, in: record)
      return .null
    }
    guard case .string(let target) = record.fields[toOne.field], !target.isEmpty else {
      try metadata.unpark(record: record.name, property: toOne.name)
      return .null
    }
    if let reference = try destination(toOne, named: target) {
      try metadata.unpark(record: record.name, property: toOne.name)
      return .reference(reference)
    }
    try metadata.park(
      ParkedLink(record: record.name, property: toOne.name, target: target, isOneToOne: false)
    )
    return .null
  }

  /// The object of a record name, if it can be a destination of the relationship.
  func destination(_ toOne: ToOneMapping, named name: String) throws -> RowReference? {
    guard let record = try metadata.record(named: name), let reference = reference(of: record),
      let entity = mapping.entity(named: record.entityName),
      entity.layout.isMemberOrSub(of: toOne.destinationEntity),
      // An object with a pending deletion gets no new members: the cascade would delete them too.
      try !metadata.isGoneRecord(name)
    else { return nil }
    return reference
  }

  /// Parks a one-to-one: both sides have a field, and they are settled when both have been read.
  func parkOneToOne(_ toOne: ToOneMapping, in record: CloudRecord) throws {
    var target: String?
    if case .string(let name) = record.fields[toOne.field], !name.isEmpty { target = name }
    try metadata.park(
      ParkedLink(record: record.name, property: toOne.name, target: target, isOneToOne: true)
    )
  }

  /// Marks a link for export that the server's record lacks: its object was restored here before
  /// this target was.
  func markRestored(_ toOne: ToOneMapping, of name: String, to target: String) throws {
    guard let source = try metadata.record(named: name),
      let entity = mapping.entity(named: source.entityName)
    else { return }
    let agreed = source.base.flatMap { entity.reading($0).fields[toOne.field] }
    if agreed != .string(target) { try mark(source, [toOne.name]) }
  }

  /// Marks an edge for export that was restored before both of its objects were imported.
  func sendRestored(_ name: String) throws {
    guard var edge = try metadata.edge(named: name), edge.isLinked, edge.tag == nil,
      edge.sequence == nil, edge.pending == .nothing
    else { return }
    edge.pending = .save
    edge.group = try rows.lastTransactionNumber()
    try metadata.update(edge)
  }

  func applyEdge(
    _ record: CloudRecord,
    generation: Int64,
    _ effect: inout ImportEffect
  ) throws {
    // The edge was created again after a deletion that an earlier page of the feed listed.
    try metadata.forgetGoneEdge(record.name)
    var known = try metadata.edge(named: record.name)
    if var known, known.tag == record.tag, known.tag != nil {
      guard known.generation != generation else { return }
      known.generation = generation
      try metadata.update(known)
      // An earlier model dropped the relationship, and this one has it again.
      if !known.isLinked, known.pending != .delete { try link(known) }
      return
    }
    let named = Edge(fields: record.fields)
    // An edge whose names only the records of its objects explain is kept as it is until they arrive.
    guard
      let edge = try named.flatMap(present)
        ?? named.flatMap({ try waitsForObjects($0) ? $0 : nil })
    else {
      effect.skipped.append(record.name)
      if var known, known.generation != generation {
        known.generation = generation
        try metadata.update(known)
      }
      context.journal.note(
        .import,
        .recordSkipped,
        cause: "The edge record names no relationship of this model.",
        effect: "The record stays in CloudKit."
      ) { $0.recordNames = [record.name] }
      return
    }
    if known == nil, try metadata.takeUnsent(record.name) {
      // Another device may have created the link again; a re-created link has the same record name.
      try keepRemovedLink(edge)
      known = try removedUnsent(record.name, edge)
    }
    var edgeMetadata = known ?? EdgeMetadata(name: record.name, edge: edge)
    if let known, known.edge != edge, known.isLinked { try unlink(known) }
    if edgeMetadata.edge != edge {
      edgeMetadata.edge = edge
      edgeMetadata.isLinked = false
    }
    edgeMetadata.tag = record.tag
    edgeMetadata.stamps = record.stamps
    edgeMetadata.generation = generation
    // The link was made again while its removal is being sent: `pending` keeps that until the reply arrives.
    if edgeMetadata.pending == .save, edgeMetadata.sentKind != .delete {
      edgeMetadata.pending = .nothing
    }
    if known == nil {
      edgeMetadata = try metadata.insert(edgeMetadata)
    } else {
      try metadata.update(edgeMetadata)
    }
    if !edgeMetadata.isLinked, edgeMetadata.pending != .delete {
      try link(edgeMetadata)
      effect.updated.append(record.name)
    }
  }

  /// Keeps a link between two objects of this store that is about to be removed because it was removed here before.
  private func keepRemovedLink(_ edge: Edge) throws {
    guard let first = try metadata.record(named: edge.firstRecord), first.key != nil,
      try reference(named: edge.secondRecord) != nil
    else { return }
    try recovery.keepLink(edge, of: first, .linkRemovedHere)
  }

  /// Marks an edge for deletion whose link was removed here before this store sent it.
  private func removedUnsent(_ name: String, _ edge: Edge) throws -> EdgeMetadata {
    var removed = EdgeMetadata(name: name, edge: edge)
    removed.pending = .delete
    removed.group = try rows.lastTransactionNumber()
    return try metadata.insert(removed)
  }

  func link(_ edge: EdgeMetadata) throws {
    guard let present = try present(edge.edge),
      let relationship = mapping.manyToMany(
        entityName: present.relationship.first.entityName,
        relationship: present.relationship.first.relationship
      ),
      let first = try reference(named: present.firstRecord),
      let second = try reference(named: present.secondRecord)
    else { return }
    try rows.addLink(relationship.description, first, second)
    var edge = edge
    edge.edge = present
    edge.isLinked = true
    try metadata.update(edge)
  }

  /// Removes the link of an edge, unless another record represents the same edge.
  func unlink(_ edge: EdgeMetadata) throws {
    let others = try metadata.edges(like: edge.edge).filter { $0.id != edge.id && $0.isLinked }
    guard others.isEmpty,
      let relationship = mapping.manyToMany(
        entityName: edge.edge.relationship.first.entityName,
        relationship: edge.edge.relationship.first.relationship
      ),
      let first = try reference(named: edge.edge.firstRecord),
      let second = try reference(named: edge.edge.secondRecord)
    else { return }
    try rows.removeLink(relationship.description, first, second)
  }
}
