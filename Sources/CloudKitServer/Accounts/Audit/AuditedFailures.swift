/// Decides which failures of an hour are written to the audit log.
///
/// One sender, or many attempts against one account, cannot use up the lines of others: each
/// account and each network has a share, and the first failure of an account in an hour is always
/// written.
struct AuditedFailures: Hashable, Sendable {
  /// The most accounts and networks that are counted; beyond it, none is added.
  private static let names = 10_000

  private var hour: Int64 = 0
  private var ofAccounts = 0
  private var ofUnknownNames = 0
  private var byAccount: [String: Int] = [:]
  private var byNetwork: [String: Int] = [:]

  /// Counts a failure, of an account or of an unknown name, and returns whether to write a line.
  mutating func keepsLine(
    of account: String?,
    from sender: SenderAddress?,
    now: Int64,
    _ limits: ServiceLimits
  ) -> Bool {
    let current = now / 3_600_000
    if hour != current {
      self = AuditedFailures()
      hour = current
    }
    // One customer may have all networks of a site.
    let network = sender?.site
    if let account, byAccount[account] == nil, byAccount.count < Self.names {
      count(network)
      byAccount[account] = 1
      ofAccounts += 1
      return true
    }
    let share = limits.auditedFailuresPerShare
    if let account, (byAccount[account] ?? share) >= share { return false }
    if let network, (byNetwork[network] ?? 0) >= share { return false }
    let all = account == nil ? ofUnknownNames : ofAccounts
    guard all < limits.auditedFailuresPerHour else { return false }
    count(network)
    guard let account else {
      ofUnknownNames += 1
      return true
    }
    byAccount[account, default: 0] += 1
    ofAccounts += 1
    return true
  }

  private mutating func count(_ network: String?) {
    guard let network, byNetwork[network] != nil || byNetwork.count < Self.names else { return }
    byNetwork[network, default: 0] += 1
  }
}
