/// The seam between the object graph and a store of rows.
///
/// Every call is synchronous and may come from any thread; a store synchronizes itself.
package protocol RowStore: AnyObject, Sendable {
  /// The entity's `Z_ENT` in this store.
  func number(of entity: NSEntityDescription) throws -> Int32
  /// The entity with this `Z_ENT`; nil if the model has none.
  func layout(number: Int32) -> EntityLayout?
  /// Reserves keys of the entity's inheritance tree, which are never assigned twice.
  func reserveKeys(for entity: NSEntityDescription, count: Int) throws -> Range<Int64>

  func fetch(_ request: RowFetch) throws -> RowFetchResult
  /// The results of a fetch of references, in compact form.
  func referenceList(_ request: RowFetch) throws -> ReferenceList
  /// The row from the row cache, or else from the file.
  func row(_ reference: RowReference) throws -> RowAnswer
  /// Several rows; deleted ones are omitted.
  func rows(_ references: [RowReference]) throws -> [RowReference: Row]
  /// The destinations of a to-many relationship for many sources, in order if it is ordered.
  func destinations(
    of relationship: NSRelationshipDescription,
    from sources: [RowReference]
  ) throws -> [RowReference: [RowReference]]
  /// The destinations of a to-many relationship: a list for each source, in the sources' order.
  func destinationLists(
    of relationship: NSRelationshipDescription,
    from sources: [RowReference]
  ) throws -> DestinationLists
  /// The destinations of a to-many relationship, with their rows if a column of theirs refers to the sources.
  func destinationLists(
    of relationship: NSRelationshipDescription,
    from sources: [RowReference],
    bringing rows: RowBringing
  ) throws -> DestinationLists
  /// A row for each reference, in their order; nil if there is none.
  func rows(_ references: [RowReference], _ policy: RowReadPolicy) throws -> [Row?]
  /// The destinations of a to-many relationship of one source, in order, with their rows.
  ///
  /// The relationship is given by its index among the to-manys of the source's layout. The members
  /// are appended to a list, whose memory the caller reuses.
  func appendMembers(
    ofToMany index: Int,
    from source: RowReference,
    to members: inout [RowMember]
  ) throws

  /// Writes all changes in one transaction; throws ``RowConflictError`` if a version differs.
  func commit(_ changes: RowChanges) throws -> RowCommit
  /// Runs the rest of a save that spans stores, when everything is written here and nothing is
  /// committed yet; if it throws, this store's transaction is rolled back.
  ///
  /// The commit is added to the announcements, which the caller sends when no store is locked.
  func commit(
    _ changes: RowChanges,
    _ announcements: CommitAnnouncements,
    before rest: () throws -> Void
  ) throws -> RowCommit
  /// The row, if it is cached.
  func cachedRow(_ reference: RowReference) -> Row?
  /// Removes cached rows, so that the next read uses the file.
  func forget(_ references: [RowReference])

  /// Calls the observer after each commit of this process to this store, on the committing thread,
  /// without a lock.
  func observeCommits(_ observer: @escaping @Sendable (StoreCommit) -> Void)
}

extension RowStore {
  /// Without transactions a write can't be rolled back, so the rest of the save runs first.
  package func commit(
    _ changes: RowChanges,
    _ announcements: CommitAnnouncements,
    before rest: () throws -> Void
  ) throws -> RowCommit {
    try rest()
    return try commit(changes)
  }

  package func cachedRow(_ reference: RowReference) -> Row? { nil }

  package func rows(_ references: [RowReference], _ policy: RowReadPolicy) throws -> [Row?] {
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

/// How a store reads rows for a caller.
package enum RowReadPolicy: Sendable {
  /// Rows that are read from the file are cached.
  case cached
  /// Rows that are read from the file are not cached: the caller makes one pass over them.
  case uncached
  /// The caller uses the to-ones alone: attributes may be null, and no row is cached.
  case linksOnly
}

/// Whether the destinations' rows are read when a relationship is followed.
package enum RowBringing: Sendable {
  case none
  /// They are read, and the store caches them.
  case cached
  /// They are read for the caller only.
  case passing
}

/// A destination of a to-many relationship.
package struct RowMember: Sendable {
  package var reference: RowReference
  /// The row, if the store read it.
  package var row: Row?

  package init(reference: RowReference, row: Row?) {
    self.reference = reference
    self.row = row
  }
}

/// A commit notification.
package struct StoreCommit: Sendable {
  package var author: String?
  package var contextName: String?
  package var transactionNumber: Int64?
  package var inserted: [RowReference]
  package var updated: [RowReference]
  package var deleted: [RowReference]
  /// Whether a context's save wrote it; otherwise contexts have not merged it yet.
  package var isContextSave: Bool
  /// Whether contexts that merge automatically merge it; for batch requests the app does that.
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

  /// The commit of a context's save to a store without a history.
  init(contextSave changes: RowChanges) {
    self.init(
      author: changes.author,
      contextName: changes.contextName,
      transactionNumber: nil,
      inserted: changes.inserted.map(\.reference),
      updated: changes.updated.map(\.reference),
      deleted: changes.deleted.map(\.reference),
      isContextSave: true
    )
  }
}
