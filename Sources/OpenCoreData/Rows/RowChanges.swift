/// What one save asks of one store.
///
/// Everything happens in one transaction or not at all.
package struct RowChanges {
  package struct Insertion {
    /// Its key comes from ``RowStore/reserveKeys(for:count:)``.
    package var reference: RowReference
    package var layout: EntityLayout
    /// The row as it is to be written.
    package var row: Row
    /// By row index.
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
    /// The version that was read: the row is written only if it still has it.
    package var expectedVersion: Int64
    /// Row indexes of the values that changed.
    package var changed: [Int]
    /// Indexes of the to-many relationships that changed, for the history's column bits.
    package var changedToManys: [Int]
    /// The row as it is to be written, of the version after the expected one.
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

  /// One edge that no to-one column holds: many-to-many, or to-many without an inverse.
  package struct Link {
    /// The relationship as seen from `source`.
    ///
    /// Not counted, as a save has many links: a frozen model lives as long as the process.
    package unowned(unsafe) var relationship: NSRelationshipDescription
    package var source: RowReference
    package var destination: RowReference
    /// Whether the edge is made or removed.
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

  /// The whole order of an ordered to-many after the save.
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

  /// A row that is not changed but must still be what was read.
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
  /// Goes into the history.
  package var author: String?
  /// Goes into the history.
  package var contextName: String?

  package init() {}

  package var isEmpty: Bool {
    inserted.isEmpty && updated.isEmpty && deleted.isEmpty && links.isEmpty && orders.isEmpty
      && checks.isEmpty
  }
}

/// What a save did.
package struct RowCommit: Sendable {
  /// The inserted and updated rows as they stand now, versions included.
  package var rows: [Row]
  /// The history transaction, where history is kept.
  package var transactionNumber: Int64?

  package init(rows: [Row], transactionNumber: Int64?) {
    self.rows = rows
    self.transactionNumber = transactionNumber
  }
}

/// Rows had changed since they were read.
///
/// Nothing was written.
package struct RowConflictError: Error {
  package struct Conflict: Sendable {
    package var reference: RowReference
    package var expectedVersion: Int64
    /// The row as the store has it; nil where it is gone.
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
