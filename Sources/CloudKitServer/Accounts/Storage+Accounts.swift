extension Storage {
  /// The account of a name, or the error for an administrator.
  func account(named userName: String) throws -> StoredAccount {
    guard let account = try read({ try $0.account(userName: userName) }) else {
      throw AdministrationError(description: "There is no account \"\(userName)\".")
    }
    return account
  }

  /// The name of an account, for the log; empty if it no longer exists.
  func userName(of account: String) throws -> String {
    try read { try $0.account(id: account) }?.userName ?? ""
  }
}
