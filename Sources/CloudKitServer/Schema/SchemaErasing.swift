import CloudKitWebServices

/// The data that a schema change has still to erase: stored in the transaction that changes the
/// schema and removed with the last erased record, so that a server that stops in between continues
/// later.
struct SchemaErasing: Codable, Hashable, Sendable {
  /// Removed types, whose records are deleted.
  var types: Set<String>
  /// Types with removed fields.
  var strippedTypes: Set<String>
  /// For a reset: the databases up to this number are empty.
  ///
  /// They are emptied in the order of their numbers; data saved later in an emptied database is
  /// kept.
  var emptiedThrough: Int64?

  /// Nil if nothing was removed.
  init?(_ difference: SchemaDifference, isReset: Bool) {
    let removed = difference.changes.filter { $0.kind == .removed }
    types = Set(removed.filter { $0.subject == .recordType }.map(\.name))
    strippedTypes = Set(removed.filter { $0.subject == .field }.compactMap(\.recordType))
      .subtracting(types).subtracting([ShareDictionary.recordType])
    if isReset { emptiedThrough = .min }
    if types.isEmpty, strippedTypes.isEmpty, !isReset { return nil }
  }

  /// Each container has at most one pending erasing.
  static func key(_ container: String) -> DirectoryEntry.Key {
    DirectoryEntry.Key(.schemaErasing, container)
  }
}

/// The development schema can't be extended while data of removed fields remains: a field that is
/// added again would show the deleted values.
struct ErasingUnderway: Error {}
