import WatershedSQLite

/// The members of rows that a save deletes.
extension RowWriter {
  /// One link, as the keys of its ends.
  private struct Ends: Hashable {
    let source: Int64
    let destination: Int64
  }

  /// The rows that a save deletes and that have members of which the save does not know: it neither
  /// deletes the member nor removes the link.
  ///
  /// Comparing the row's version does not find them: a context may have read the members, then another
  /// context added one, and then the first context read the newer row. The query runs before the rows
  /// are deleted, because their links are deleted with them.
  func ownersOfUnknownMembers(_ changes: RowChanges) throws -> Set<RowReference> {
    var owners: Set<RowReference> = []
    let groups = Dictionary(grouping: changes.deleted.map(\.reference), by: \.entityNumber)
    for (number, references) in groups.sorted(by: { $0.key < $1.key }) {
      let entity = try store.table(of: references[0])
      let list = "[\(references.map { String($0.key) }.joined(separator: ","))]"
      for query in entity.members {
        let links = try connection.query(query.select, [.text(list)]) {
          Ends(source: $0.int64(0), destination: $0.int64(1))
        }
        guard !links.isEmpty else { continue }
        let gone = try deletedKeys(changes, root: query.rootNumber)
        let removed = try removedLinks(changes, of: query)
        for link in links where !gone.contains(link.destination) && !removed.contains(link) {
          owners.insert(RowReference(entityNumber: number, key: link.source))
        }
      }
    }
    return owners
  }

  private func deletedKeys(_ changes: RowChanges, root: Int32) throws -> Set<Int64> {
    var keys: Set<Int64> = []
    for deletion in changes.deleted
    where try store.table(of: deletion.reference).rootNumber == root {
      keys.insert(deletion.reference.key)
    }
    return keys
  }

  private func removedLinks(_ changes: RowChanges, of query: MemberQuery) throws -> Set<Ends> {
    var removed: Set<Ends> = []
    for link in changes.links where !link.isInsertion {
      let (source, destination) = (link.source.key, link.destination.key)
      switch try store.table(of: link.source).link(of: link.relationship) {
      case .join(query.table, query.source, _, _):
        removed.insert(Ends(source: source, destination: destination))
        // A relationship that is its own inverse has both directions.
        if link.relationship.inverseRelationship === link.relationship {
          removed.insert(Ends(source: destination, destination: source))
        }
      case .join(query.table, query.destination, _, _):
        removed.insert(Ends(source: destination, destination: source))
      case .foreignKey(query.table, query.source, _, true):
        removed.insert(Ends(source: source, destination: destination))
      default: continue
      }
    }
    return removed
  }
}
