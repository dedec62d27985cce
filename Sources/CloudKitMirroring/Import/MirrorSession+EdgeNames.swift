import OpenCoreData

/// The names of edges in records, which are those of the model that created them.
extension MirrorSession {
  /// An edge with this model's names; nil if the model has no such relationship.
  ///
  /// A mapping model may rename an entity without a renaming identifier: the entity is then that of
  /// the object's record, which has been sent under its new name.
  func present(_ edge: Edge) throws -> Edge? {
    if let present = mapping.present(edge) { return present }
    guard let first = try side(edge.relationship.first, ofRecord: edge.firstRecord),
      let second = try side(edge.relationship.second, ofRecord: edge.secondRecord)
    else { return nil }
    let relationship = EdgeRelationship(first, second)
    let isInOrder = relationship.first == first
    return mapping.present(
      Edge(
        relationship: relationship,
        firstRecord: isInOrder ? edge.firstRecord : edge.secondRecord,
        secondRecord: isInOrder ? edge.secondRecord : edge.firstRecord
      )
    )
  }

  /// Whether an edge with names of another model may be one of this model's, which the records of its
  /// objects show once they have been imported.
  func waitsForObjects(_ edge: Edge) throws -> Bool {
    let (one, other) = (edge.relationship.first, edge.relationship.second)
    return try isOrMayBePresent(one, ofRecord: edge.firstRecord)
      && isOrMayBePresent(other, ofRecord: edge.secondRecord)
  }

  private func isOrMayBePresent(
    _ side: EdgeRelationship.Side,
    ofRecord name: String
  ) throws -> Bool {
    if try self.side(side, ofRecord: name) != nil { return true }
    return try metadata.record(named: name) == nil && mapping.hasManyToMany(side.relationship)
  }

  private func side(
    _ side: EdgeRelationship.Side,
    ofRecord name: String
  ) throws -> EdgeRelationship.Side? {
    if let present = mapping.present(side) { return present }
    return try metadata.record(named: name).flatMap {
      mapping.side(side.relationship, ofEntity: $0.entityName)
    }
  }
}
