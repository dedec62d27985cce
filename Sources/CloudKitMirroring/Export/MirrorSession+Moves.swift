import OpenCoreData

/// Members that leave their owners and whose moves wait to be sent.
struct PendingMoves {
  /// The record names of the members by that of the owner whose deletion deletes them too, where the server
  /// does not know of the move.
  var members: [String: Set<String>] = [:]

  /// The owners with a member whose move is not among some changes.
  func held(without saves: Set<String>) -> Set<String> {
    Set(members.filter { !$0.value.isSubset(of: saves) }.keys)
  }
}

/// The order of the deletion of an owner and the moves of its former members.
///
/// Where the deletion arrives first, the delete rules of other devices delete the members too, and then the
/// server's records. A full database, which takes deletions alone, and a refused record would send it first.
extension MirrorSession {
  /// The pending moves of members, if any deletion waits.
  func pendingMoves() throws -> PendingMoves {
    var moves = PendingMoves()
    guard try metadata.hasPendingDeletion(), !context.effects.has(.deleteOwnersFirst) else {
      return moves
    }
    for name in mapping.entityNames {
      guard let entity = mapping.entity(named: name) else { continue }
      for toOne in owners(of: entity) {
        for member in try metadata.recordsEdited(entity: name, property: toOne.name) {
          try note(member.name, leaving: member, entity, [toOne], &moves)
        }
      }
    }
    return moves
  }

  /// Notes a member for the owners that the server's copy of a record names, and for their owners in turn.
  private func note(
    _ member: String,
    leaving record: RecordMetadata,
    _ entity: EntityMapping,
    _ toOnes: [ToOneMapping],
    _ moves: inout PendingMoves
  ) throws {
    guard let base = record.base.map({ entity.reading($0).fields }) else { return }
    for toOne in toOnes {
      guard case .string(let owner) = base[toOne.field],
        moves.members[owner, default: []].insert(member).inserted,
        let record = try metadata.record(named: owner),
        let entity = mapping.entity(named: record.entityName)
      else { continue }
      try note(member, leaving: record, entity, owners(of: entity), &moves)
    }
  }

  /// The relationships of an entity to objects whose deletion deletes its objects too.
  private func owners(of entity: EntityMapping) -> [ToOneMapping] {
    entity.toOnes.filter {
      $0.description.inverseRelationship?.deleteRule == .cascadeDeleteRule
    }
  }

  /// The pending records that the next batch may have: no deletion of an owner before the moves of its
  /// members, which may be parked or beyond the limit.
  func pendingRecords(
    limit: Int,
    deletionsOnly: Bool,
    _ moves: PendingMoves
  ) throws -> [RecordMetadata] {
    var records = try metadata.pendingRecords(
      limit: limit + moves.members.count,
      deletionsOnly: deletionsOnly
    )
    guard !moves.members.isEmpty else { return records }
    // Once more: a move may be beyond the limit.
    for _ in 0..<2 {
      let saves = Set(records.filter { $0.pending == .save }.map(\.name))
      let held = moves.held(without: saves)
      records.removeAll { $0.pending == .delete && held.contains($0.name) }
      records = Array(records.prefix(limit))
    }
    return records
  }
}
