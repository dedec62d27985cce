import Foundation

/// Hears of changes of a container's account, as long as it lives.
final class AccountObserver: @unchecked Sendable {
  // Unchecked: the token does not change, and the notification center takes it on every thread.
  private let token: any NSObjectProtocol

  init(of container: CKContainer, _ changed: @escaping @Sendable () -> Void) {
    token = NotificationCenter.default.addObserver(
      forName: .CKAccountChanged,
      object: nil,
      queue: nil
    ) { [weak container] notification in
      // Without an object all containers are meant.
      if let other = notification.object as? CKContainer {
        guard let container, container.hasAccount(of: other) else { return }
      }
      changed()
    }
  }

  deinit {
    NotificationCenter.default.removeObserver(token)
  }
}
