/// Calls a closure at each change of a container's account, for as long as the observer lives.
package final class AccountObserver: Sendable {
  private let number: Int

  package init(of container: CKContainer, _ changed: @escaping @Sendable () -> Void) {
    number = AccountNotices.shared.add { [weak container] other in
      // A change without a container concerns all containers.
      if let other {
        guard let container, container.hasAccount(of: other) else { return }
      }
      changed()
    }
  }

  deinit {
    AccountNotices.shared.remove(number)
  }
}
