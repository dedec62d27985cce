import CloudKitWebServices
import Effects
import Foundation

extension StoredSubscription {
  func subscription() throws -> Subscription {
    try WireCoding.decode(Subscription.self, from: body)
  }
}

extension Storage {
  func subscriptions(
    of user: String,
    _ scope: DatabaseScope,
    _ container: String,
    _ environment: ContainerEnvironment
  ) throws -> [StoredSubscription] {
    let id = try partition(
      PartitionKey(container: container, environment: environment, scope: scope, owner: user)
    )
    return try read { try $0.subscriptions(in: id, user: user) }
  }
}

extension Effects {
  func notificationID() -> String { uuid().uuidString.lowercased() }
}
