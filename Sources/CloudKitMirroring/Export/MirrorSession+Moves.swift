import OpenCoreData
import Synchronization

/// Members that leave their owners and whose moves wait to be sent.
struct PendingMoves {
  /// The record names of the members by that of the owner whose deletion deletes them too, where the server
  /// does not know of the move.
  var members: [String: Set<String>] = [:]
  /// The owners whose deletion is held back, because a member's move cannot be sent with it; their other members are
  /// not looked up.
  var held: Set<String> = []

  /// The owners with a member whose move is not among the given saves.
  func held(without saves: Set<String>) -> Set<String> {
    held.union(members.filter { !$0.value.isSubset(of: saves) }.keys)
  }
}

/// The deletions of owners that the last batches held back, each with a member whose move waits.
///
/// A batch looks that member up before it looks for members among all edited objects: a move that is parked
/// may be the last of many, and holds its owner's deletion back through the whole export.
final class HeldOwners: Sendable {
  /// The most owners that are remembered; members of the others are looked for by each batch.
  private static let limit = 10_000

  private let members = Mutex<[String: String]>([:])

  subscript(owner: String) -> String? {
    get { members.withLock { $0[owner] } }
    set {
      members.withLock { members in
        if newValue != nil, members.count >= Self.limit { members = [:] }
        members[owner] = newValue
      }
    }
  }
}

/// The order of the deletion of an owner and the moves of its former members.
///
/// If the deletion arrives first, the delete rules of other devices delete the members too, and then the
/// server's records. A full database, which takes deletions alone, and a refused record would send it first.
extension MirrorSession {
  /// The number of edited objects that one query reads.
  private static let movesPerQuery = 200

  /// The pending records that the next batch may have, and the moves that the deletions among them follow.
  ///
  /// No deletion of an owner precedes the moves of its members, which may be parked or beyond the limit.
  func pendingRecords(
    limit: Int,
    deletionsOnly: Bool
  ) throws -> (records: [RecordMetadata], moves: PendingMoves) {
    var moves = PendingMoves()
    var searched: Set<String> = []
    var window = limit
    while true {
      let read = try metadata.pendingRecords(limit: window, deletionsOnly: deletionsOnly)
      let owners = Set(
        read.filter { $0.pending == .delete && deletesMembers($0.entityName) }.map(\.name)
      )
      try findMoves(from: owners.subtracting(searched), saves: Self.saves(read), &moves)
      searched.formUnion(owners)
      var records = read
      // Two passes: the first may leave a move beyond the limit, whose deletion the second holds back.
      for _ in 0..<2 {
        let held = moves.held(without: Self.saves(records))
        records.removeAll { $0.pending == .delete && held.contains($0.name) }
        records = Array(records.prefix(limit))
      }
      guard records.count < limit, read.count == window else { return (records, moves) }
      // Deletions that are held back took the place of other changes.
      window *= 2
    }
  }

  private static func saves(_ records: [RecordMetadata]) -> Set<String> {
    Set(records.lazy.filter { $0.pending == .save }.map(\.name))
  }

  /// Finds the pending moves away from owners whose deletion waits.
  ///
  /// Only owners whose deletion may be in the next batch are looked up: deletions may be many, or one may
  /// come after many edits.
  private func findMoves(
    from owners: Set<String>,
    saves: Set<String>,
    _ moves: inout PendingMoves
  ) throws {
    guard !owners.isEmpty, !context.effects.has(.deleteOwnersFirst) else { return }
    var ancestors = FormerOwners()
    var open = owners
    for owner in owners.sorted() {
      guard let member = context.heldOwners[owner] else { continue }
      if !saves.contains(member), let record = try metadata.record(named: member),
        try movesAway(record, from: owner, &ancestors)
      {
        moves.held.insert(owner)
        open.remove(owner)
      } else {
        context.heldOwners[owner] = nil
      }
    }
    guard !open.isEmpty, try hasEditedOwner() else { return }
    for name in mapping.entityNames {
      guard let entity = mapping.entity(named: name) else { continue }
      for toOne in ownerRelationships(of: entity) {
        var id: Int64 = 0
        while !open.isEmpty {
          let members = try metadata.recordsEdited(
            entity: name,
            property: toOne.name,
            after: id,
            limit: Self.movesPerQuery
          )
          for member in members {
            for owner in try formerOwners(of: member, entity, [toOne], &ancestors)
            where open.contains(owner) {
              moves.members[owner, default: []].insert(member.name)
              guard !saves.contains(member.name) else { continue }
              moves.held.insert(owner)
              open.remove(owner)
              context.heldOwners[owner] = member.name
            }
          }
          guard members.count == Self.movesPerQuery, let last = members.last else { break }
          id = last.id
        }
      }
    }
  }

  /// Whether the move of a member away from an owner waits to be sent.
  private func movesAway(
    _ member: RecordMetadata,
    from owner: String,
    _ ancestors: inout FormerOwners
  ) throws -> Bool {
    guard member.pending == .save, member.tag != nil,
      let entity = mapping.entity(named: member.entityName)
    else { return false }
    let edited = ownerRelationships(of: entity).filter { member.properties.contains($0.name) }
    return try formerOwners(of: member, entity, edited, &ancestors).contains(owner)
  }

  /// Whether there is an object that the server has, and whose owner was edited since.
  private func hasEditedOwner() throws -> Bool {
    for name in mapping.entityNames {
      guard let entity = mapping.entity(named: name) else { continue }
      for toOne in ownerRelationships(of: entity)
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
      let further = try formerOwners(
        of: ownerRecord,
        ownerEntity,
        ownerRelationships(of: ownerEntity),
        &known
      )
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
  private func ownerRelationships(of entity: EntityMapping) -> [ToOneMapping] {
    entity.toOnes.filter {
      $0.description.inverseRelationship?.deleteRule == .cascadeDeleteRule
    }
  }
}
