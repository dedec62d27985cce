import CloudKitWebServices

/// What a schema has lost and its data has still to lose: kept from the transaction that changes the
/// schema until the last record is done, so that a server which stops in between goes on later.
struct SchemaErasing: Codable, Hashable, Sendable {
  /// Types that are gone, with their records.
  var types: Set<String>
  /// Types that are there and have lost fields.
  var strippedTypes: Set<String>
  /// Of a reset: the databases up to this number are empty.
  ///
  /// All are emptied in the order of their numbers; what is saved later in one that is done stays.
  var emptiedThrough: Int64?

  /// Nil where nothing is lost.
  init?(_ difference: SchemaDifference, isReset: Bool) {
    let removed = difference.changes.filter { $0.kind == .removed }
    types = Set(removed.filter { $0.subject == .recordType }.map(\.name))
    strippedTypes = Set(removed.filter { $0.subject == .field }.compactMap(\.recordType))
      .subtracting(types).subtracting([ShareDictionary.recordType])
    if isReset { emptiedThrough = .min }
    if types.isEmpty, strippedTypes.isEmpty, !isReset { return nil }
  }

  /// One container erases one thing at a time.
  static func key(_ container: String) -> DirectoryEntry.Key {
    DirectoryEntry.Key(.schemaErasing, container)
  }
}

/// The development schema cannot grow while data of what it lost is still there: a field that comes
/// back would show what was deleted.
struct ErasingUnderway: Error {}
