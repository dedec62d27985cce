/// The changes of one save to one store.
///
/// They are written in one transaction or not at all.
package struct RowChanges {
  package struct Insertion {
    /// Its key is from ``RowStore/reserveKeys(for:count:)``.
    package var reference: RowReference
    package var layout: EntityLayout
    /// The row to write.
    package var row: Row
    /// The values by row index.
    package var values: [RowValue] { row.values }

    package init(reference: RowReference, layout: EntityLayout, row: Row) {
      self.reference = reference
      self.layout = layout
      self.row = row
    }

    package init(reference: RowReference, layout: EntityLayout, values: [RowValue]) {
      self.reference = reference
      self.layout = layout
      row = Row(reference: reference, version: 1, values: values)
    }
  }

  package struct Update {
    package var reference: RowReference
    package var layout: EntityLayout
    /// The version that was read: the row is written only if it is unchanged.
    package var expectedVersion: Int64
    /// The row indexes of the changed values.
    package var changed: [Int]
    /// The indexes of the changed to-many relationships, for the history's column bits.
    package var changedToManys: [Int]
    /// The row to write, with the version after the expected one.
    package var row: Row
    /// All values, by row index.
    package var values: [RowValue] { row.values }

    package init(
      reference: RowReference,
      layout: EntityLayout,
      expectedVersion: Int64,
      changed: [Int],
      changedToManys: [Int] = [],
      row: Row
    ) {
      self.reference = reference
      self.layout = layout
      self.expectedVersion = expectedVersion
      self.changed = changed
      self.changedToManys = changedToManys
      self.row = row
    }

    package init(
      reference: RowReference,
      layout: EntityLayout,
      expectedVersion: Int64,
      changed: [Int],
      changedToManys: [Int] = [],
      values: [RowValue]
    ) {
      self.init(
        reference: reference,
        layout: layout,
        expectedVersion: expectedVersion,
        changed: changed,
        changedToManys: changedToManys,
        row: Row(reference: reference, version: expectedVersion + 1, values: values)
      )
    }
  }

  package struct Deletion {
    package var reference: RowReference
    package var layout: EntityLayout
    package var expectedVersion: Int64

    package init(reference: RowReference, layout: EntityLayout, expectedVersion: Int64) {
      self.reference = reference
      self.layout = layout
      self.expectedVersion = expectedVersion
    }
  }

  /// An edge that no to-one column contains: many-to-many, or to-many without an inverse.
  package struct Link {
    /// The relationship on the side of `source`.
    ///
    /// The relationship, unretained, as a save has many links: a frozen model lives as long as the process.
    package unowned(unsafe) var relationship: NSRelationshipDescription
    package var source: RowReference
    package var destination: RowReference
    /// Whether the edge is added or removed.
    package var isInsertion: Bool

    package init(
      relationship: NSRelationshipDescription,
      source: RowReference,
      destination: RowReference,
      isInsertion: Bool
    ) {
      self.relationship = relationship
      self.source = source
      self.destination = destination
      self.isInsertion = isInsertion
    }
  }

  /// The complete order of an ordered to-many after the save.
  package struct Order {
    package var relationship: NSRelationshipDescription
    package var source: RowReference
    package var destinations: [RowReference]

    package init(
      relationship: NSRelationshipDescription,
      source: RowReference,
      destinations: [RowReference]
    ) {
      self.relationship = relationship
      self.source = source
      self.destinations = destinations
    }
  }

  /// A row that is not changed, but must have the version that was read.
  package struct Check {
    package var reference: RowReference
    package var expectedVersion: Int64

    package init(reference: RowReference, expectedVersion: Int64) {
      self.reference = reference
      self.expectedVersion = expectedVersion
    }
  }

  package var inserted: [Insertion] = []
  package var updated: [Update] = []
  package var deleted: [Deletion] = []
  package var links: [Link] = []
  package var orders: [Order] = []
  package var checks: [Check] = []
  /// The author in the history.
  package var author: String?
  /// The context's name in the history.
  package var contextName: String?

  package init() {}

  package var isEmpty: Bool {
    inserted.isEmpty && updated.isEmpty && deleted.isEmpty && links.isEmpty && orders.isEmpty
      && checks.isEmpty
  }
}

/// The result of a save.
package struct RowCommit: Sendable {
  /// The inserted and updated rows with their new versions.
  package var rows: [Row]
  /// The history transaction, if history is kept.
  package var transactionNumber: Int64?

  package init(rows: [Row], transactionNumber: Int64?) {
    self.rows = rows
    self.transactionNumber = transactionNumber
  }
}

/// The error of a save whose rows had changed since they were read.
///
/// Nothing was written.
package struct RowConflictError: Error {
  package struct Conflict: Sendable {
    package var reference: RowReference
    package var expectedVersion: Int64
    /// The store's row; nil if it was deleted.
    package var persisted: Row?

    package init(reference: RowReference, expectedVersion: Int64, persisted: Row?) {
      self.reference = reference
      self.expectedVersion = expectedVersion
      self.persisted = persisted
    }
  }

  package var conflicts: [Conflict]

  package init(conflicts: [Conflict]) {
    self.conflicts = conflicts
  }
}

extension RowChanges {
  /// Whether each object to which an inserted or changed row newly refers is changed too, as its inverse makes it.
  ///
  /// An owner is missing among the changes if the app refreshed it before the save, if the app set the primitive value
  /// alone, or if a merge policy discarded the owner's edits.
  var haveOwnersOfAll: Bool {
    var owners: Set<RowReference> = []
    func note(_ row: Row, _ layout: EntityLayout, _ isChanged: (Int) -> Bool) {
      for slot in layout.toOnes where slot.inverse != nil {
        guard let index = slot.rowIndex, isChanged(index), case .reference(let owner) = row[index]
        else { continue }
        owners.insert(owner)
      }
    }
    for insertion in inserted { note(insertion.row, insertion.layout) { _ in true } }
    for update in updated { note(update.row, update.layout) { update.changed.contains($0) } }
    for insertion in inserted { owners.remove(insertion.reference) }
    for update in updated { owners.remove(update.reference) }
    return owners.isEmpty
  }
}
