extension StorageFormat {
  /// Version 5: accounts are looked up by email address with an index; older servers scan the table.
  static let addressIndex = Step(version: 5, oldestServer: 2) { _ in
    [
      "DROP INDEX IF EXISTS accounts_by_address",
      "CREATE INDEX accounts_by_address ON accounts (lower(email_address))",
    ]
  }
}
