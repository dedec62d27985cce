/// The seam between the object graph and a store of rows.
///
/// Every call is synchronous and may come from any thread; a store guards itself.
package protocol RowStore: AnyObject, Sendable {
  /// The entity's `Z_ENT` in this store.
  func number(of entity: NSEntityDescription) throws -> Int32
  /// The entity with this `Z_ENT`; nil for numbers the model does not know.
  func layout(number: Int32) -> EntityLayout?
  /// Hands out keys of the entity's inheritance tree, never used before or again.
  func reserveKeys(for entity: NSEntityDescription, count: Int) throws -> Range<Int64>

  func fetch(_ request: RowFetch) throws -> RowFetchResult
  /// What a fetch of references finds, in little memory.
  func referenceList(_ request: RowFetch) throws -> ReferenceList
  /// The row from the row cache, or else from the file.
  func row(_ reference: RowReference) throws -> RowAnswer
  /// Many rows at once; those that are gone are left out.
  func rows(_ references: [RowReference]) throws -> [RowReference: Row]
  /// Whom a to-many relationship leads to, for many sources at once, in order where it is ordered.
  func destinations(
    of relationship: NSRelationshipDescription,
    from sources: [RowReference]
  ) throws -> [RowReference: [RowReference]]
  /// The same without a dictionary: a list for each source, in their order.
  func destinationLists(
    of relationship: NSRelationshipDescription,
    from sources: [RowReference]
  ) throws -> DestinationLists
  /// The same, with the destinations' rows where they are the ones that lead to the sources.
  func destinationLists(
    of relationship: NSRelationshipDescription,
    from sources: [RowReference],
    bringing rows: RowBringing
  ) throws -> DestinationLists
  /// A row for each reference, in their order; nil where there is none.
  func orderedRows(_ references: [RowReference]) throws -> [Row?]
  /// The same for rows that somebody passes by: the store does not cache them for others.
  func passingRows(_ references: [RowReference]) throws -> [Row?]
  /// Whom a to-many relationship leads to from one source, in order, with their rows.
  ///
  /// The relationship goes by its number among the to-manys of the source's layout. The members are
  /// appended to a list, whose memory its owner uses again and again.
  func appendMembers(
    ofToMany index: Int,
    from source: RowReference,
    to members: inout [RowMember]
  ) throws

  /// Writes all changes in one transaction; throws ``RowConflictError`` where a version differs.
  func commit(_ changes: RowChanges) throws -> RowCommit
  /// Does the rest of a save that spans stores when everything is written here and nothing is
  /// committed yet; where it throws, nothing is kept here either.
  ///
  /// The commit is added to the announcements, which the caller sends when no store is locked.
  func commit(
    _ changes: RowChanges,
    _ announcements: CommitAnnouncements,
    before rest: () throws -> Void
  ) throws -> RowCommit
  /// The row where it is cached.
  func cachedRow(_ reference: RowReference) -> Row?
  /// Forgets a cached row, so that the next read goes to the file.
  func forget(_ references: [RowReference])

  /// Calls the observer after each commit to this store by this process, whoever wrote it, on the
  /// thread that committed, with no lock held.
  func observeCommits(_ observer: @escaping @Sendable (StoreCommit) -> Void)
}

extension RowStore {
  /// Without transactions what was written cannot be taken back, so the rest comes first.
  package func commit(
    _ changes: RowChanges,
    _ announcements: CommitAnnouncements,
    before rest: () throws -> Void
  ) throws -> RowCommit {
    try rest()
    return try commit(changes)
  }

  package func cachedRow(_ reference: RowReference) -> Row? { nil }

  package func orderedRows(_ references: [RowReference]) throws -> [Row?] {
    let found = try rows(references)
    return references.map { found[$0] }
  }

  package func destinationLists(
    of relationship: NSRelationshipDescription,
    from sources: [RowReference]
  ) throws -> DestinationLists {
    let found = try destinations(of: relationship, from: sources)
    var lists = DestinationLists(sourceCount: sources.count)
    for (place, source) in sources.enumerated() {
      lists.append(found[source] ?? [], at: place)
    }
    return lists
  }

  package func destinationLists(
    of relationship: NSRelationshipDescription,
    from sources: [RowReference],
    bringing rows: RowBringing
  ) throws -> DestinationLists {
    try destinationLists(of: relationship, from: sources)
  }

  package func referenceList(_ request: RowFetch) throws -> ReferenceList {
    guard case .references(let references) = try fetch(request) else { return ReferenceList() }
    return ReferenceList(references)
  }

  package func passingRows(_ references: [RowReference]) throws -> [Row?] {
    try orderedRows(references)
  }

  package func appendMembers(
    ofToMany index: Int,
    from source: RowReference,
    to members: inout [RowMember]
  ) throws {
    guard let relationship = layout(number: source.entityNumber)?.toManys[index].description else {
      return
    }
    for reference in try destinations(of: relationship, from: [source])[source] ?? [] {
      members.append(RowMember(reference: reference, row: nil))
    }
  }
}

/// What becomes of the destinations' rows when a relationship is followed.
package enum RowBringing: Sendable {
  case none
  /// They come along, and the store caches them for others.
  case cached
  /// They come along for whoever asked alone.
  case passing
}

/// One destination of a to-many relationship.
package struct RowMember: Sendable {
  package var reference: RowReference
  /// Where the store has it at hand.
  package var row: Row?

  package init(reference: RowReference, row: Row?) {
    self.reference = reference
    self.row = row
  }
}

/// A commit as told to whom it may concern.
package struct StoreCommit: Sendable {
  package var author: String?
  package var contextName: String?
  package var transactionNumber: Int64?
  package var inserted: [RowReference]
  package var updated: [RowReference]
  package var deleted: [RowReference]
  /// Whether a context's save wrote it; otherwise contexts have yet to learn of it.
  package var isContextSave: Bool
  /// Whether contexts that merge automatically take it; batch requests leave that to the app.
  package var mergesIntoContexts = true

  package init(
    author: String?,
    contextName: String?,
    transactionNumber: Int64?,
    inserted: [RowReference],
    updated: [RowReference],
    deleted: [RowReference],
    isContextSave: Bool
  ) {
    self.author = author
    self.contextName = contextName
    self.transactionNumber = transactionNumber
    self.inserted = inserted
    self.updated = updated
    self.deleted = deleted
    self.isContextSave = isContextSave
  }
}
