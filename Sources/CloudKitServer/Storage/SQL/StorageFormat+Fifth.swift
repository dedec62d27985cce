extension StorageFormat {
  /// Accounts are found by their addresses through an index; older servers look through them all.
  static let fifthVersion = Step(version: 5, oldestServer: 2) { dialect in
    let table = StorageTables.accounts
    // The second step may have made it already, from the same list of tables.
    return ["DROP INDEX IF EXISTS accounts_by_address"]
      + table.indexes.filter(\.isFolded).map { table.definition(of: $0, dialect) }
  }
}
