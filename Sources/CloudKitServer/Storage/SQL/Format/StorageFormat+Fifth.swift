extension StorageFormat {
  /// Accounts are looked up by email address with an index; older servers scan the table.
  static let fifthVersion = Step(version: 5, oldestServer: 2) { dialect in
    let table = StorageTables.accounts
    // The second step may have created it already, from the same list of tables.
    return ["DROP INDEX IF EXISTS accounts_by_address"]
      + table.indexes.filter(\.isFolded).map { table.definition(of: $0, dialect) }
  }
}
