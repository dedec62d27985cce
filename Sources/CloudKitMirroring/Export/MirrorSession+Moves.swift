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
  /// The pending moves away from owners whose deletion waits.
  ///
  /// An owner is held back already if it has more members than a batch may have, given by a limit: no others of
  /// its members are looked for.
  func pendingMoves(limit: Int) throws -> PendingMoves {
    var moves = PendingMoves()
    // Deletions may be many, and few are of objects whose members moved away.
    guard !context.effects.has(.deleteOwnersFirst), try metadata.hasPendingDeletion(),
      try hasEditedOwner()
    else { return moves }
    let deleted = try metadata.pendingDeletions().filter { deletesMembers($0.entityName) }
    var open = Set(deleted.map(\.name))
    guard !open.isEmpty else { return moves }
    var ancestors = FormerOwners()
    for name in mapping.entityNames {
      guard let entity = mapping.entity(named: name) else { continue }
      for toOne in owners(of: entity) {
        var id: Int64 = 0
        while !open.isEmpty {
          let members = try metadata.recordsEdited(
            entity: name,
            property: toOne.name,
            after: id,
            limit: limit
          )
          for member in members {
            for owner in try formerOwners(of: member, entity, [toOne], &ancestors)
            where open.contains(owner) {
              moves.members[owner, default: []].insert(member.name)
              if moves.members[owner]?.count ?? 0 > limit { open.remove(owner) }
            }
          }
          guard members.count == limit, let last = members.last else { break }
          id = last.id
        }
      }
    }
    return moves
  }

  /// Whether there is an object that the server has, and whose owner was edited since.
  private func hasEditedOwner() throws -> Bool {
    for name in mapping.entityNames {
      guard let entity = mapping.entity(named: name) else { continue }
      for toOne in owners(of: entity)
      where try !metadata.recordsEdited(entity: name, property: toOne.name, after: 0, limit: 1)
        .isEmpty
      {
        return true
      }
    }
    return false
  }

  /// The owners that were looked up, by the record name of an object that had them.
  private typealias FormerOwners = [String: Set<String>]

  /// The owners that the server's copy of a record names, and their owners in turn.
  private func formerOwners(
    of record: RecordMetadata,
    _ entity: EntityMapping,
    _ toOnes: [ToOneMapping],
    _ known: inout FormerOwners
  ) throws -> Set<String> {
    guard let base = record.base.map({ entity.reading($0).fields }) else { return [] }
    var found: Set<String> = []
    for toOne in toOnes {
      guard case .string(let owner) = base[toOne.field] else { continue }
      found.insert(owner)
      if let known = known[owner] {
        found.formUnion(known)
        continue
      }
      // Objects may own each other: until it is known, an owner has none.
      known[owner] = []
      guard let ownerRecord = try metadata.record(named: owner),
        let ownerEntity = mapping.entity(named: ownerRecord.entityName)
      else { continue }
      let further = try formerOwners(of: ownerRecord, ownerEntity, owners(of: ownerEntity), &known)
      known[owner] = further
      found.formUnion(further)
    }
    return found
  }

  /// Whether the deletion of an object of an entity deletes other objects.
  private func deletesMembers(_ entityName: String) -> Bool {
    guard let entity = mapping.entity(named: entityName) else { return false }
    let rules =
      entity.layout.toOnes.map(\.description.deleteRule) + entity.layout.toManys.map(\.deleteRule)
    return rules.contains(.cascadeDeleteRule)
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
