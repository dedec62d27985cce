/// Whether the store's own user was found signed in, and since which change of the account.
struct AccountWatch {
  /// Whether the set-up found the store's user, and no change of the account was noticed since.
  private(set) var isSetUp = false
  /// Incremented whenever the account may have changed.
  private var epoch = 0
  /// The epoch for which the work in progress has checked the account.
  private var checkedEpoch = 0
  /// Why no account can be used, as it was logged.
  private var problem: String?

  /// The epoch that the work in progress has to check; nil if it has.
  var uncheckedEpoch: Int? { checkedEpoch == epoch ? nil : epoch }

  /// Begins a round; its set-up, or the last one, has checked the account.
  mutating func beginRound() { checkedEpoch = epoch }
  mutating func noteChecked(_ epoch: Int) { checkedEpoch = epoch }

  mutating func noteSetUp() { isSetUp = true }

  /// Notes that a check failed: nothing is sent until a set-up succeeds.
  mutating func noteFailedCheck() { isSetUp = false }

  /// Notes that the account may have changed: the next round runs the set-up, and the round in progress checks the
  /// account before its next request.
  mutating func noteChange() {
    isSetUp = false
    epoch += 1
  }

  /// Notes why no account can be used, nil if one can; returns whether that is new.
  mutating func note(problem: String?) -> Bool {
    defer { self.problem = problem }
    return self.problem != problem
  }
}
