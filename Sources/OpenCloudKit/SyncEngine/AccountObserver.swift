/// Observes changes of a container's account, as long as it lives.
final class AccountObserver: Sendable {
  private let number: Int

  init(of container: CKContainer, _ changed: @escaping @Sendable () -> Void) {
    number = AccountNotices.shared.add { [weak container] other in
      // Without one, all containers are meant.
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
