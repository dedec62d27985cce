import Foundation

/// The error of rows that would violate a uniqueness constraint.
///
/// Nothing was written.
package struct RowConstraintError: Error {
  package struct Conflict: Sendable {
    /// The row that was to be written.
    package var reference: RowReference
    /// The entity that declares the constraint.
    package var entityName: String
    /// The names of the properties in the constraint.
    package var constraint: [String]
    /// The row with the same values, in the store or earlier in the same save.
    package var existing: RowReference?

    package init(
      reference: RowReference,
      entityName: String,
      constraint: [String],
      existing: RowReference?
    ) {
      self.reference = reference
      self.entityName = entityName
      self.constraint = constraint
      self.existing = existing
    }
  }

  package var conflicts: [Conflict]

  package init(conflicts: [Conflict]) {
    self.conflicts = conflicts
  }

  /// The error for callers, if no merge policy resolves the conflict.
  package var nsError: NSError {
    let names = conflicts.map { "\($0.entityName).\($0.constraint.joined(separator: ", "))" }
    return StoreError(
      .constraintMerge,
      "Values that must be unique occur twice: \(names.joined(separator: "; ")).",
      remedy: "Change the values, or give the context a merge policy that resolves conflicts."
    ).nsError
  }
}
