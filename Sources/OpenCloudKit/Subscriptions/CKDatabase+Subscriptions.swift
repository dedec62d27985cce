import CloudKitWebServices
import Foundation

extension CKDatabase {
  /// Fetches all subscriptions.
  public func allSubscriptions() async throws -> [CKSubscription] {
    let reply = try await container.client().call(
      .listSubscriptions,
      scope: databaseScope,
      repeatable: true,
      as: SubscriptionsResponse.self
    )
    // A subscription of an unknown kind is left out.
    return try reply.subscriptions.compactMap {
      CKSubscription.subscription(try item($0, in: .default), mapping: mapping)
    }
  }

  /// Fetches a subscription.
  public func subscription(for subscriptionID: CKSubscription.ID) async throws -> CKSubscription {
    guard let result = try await subscriptions(for: [subscriptionID])[subscriptionID] else {
      throw CKError(.unknownItem, "Subscription not found: \(subscriptionID)")
    }
    return try result.get()
  }

  /// Fetches subscriptions; each has a result of its own.
  public func subscriptions(
    for ids: [CKSubscription.ID]
  ) async throws -> [CKSubscription.ID: Result<CKSubscription, any Error>] {
    var results: [CKSubscription.ID: Result<CKSubscription, any Error>] = [:]
    for slice in Self.slices(ids, of: RecordModification.operationLimit) {
      let reply = try await container.client().call(
        .lookupSubscriptions,
        scope: databaseScope,
        body: LookupSubscriptionsRequest(
          subscriptions: slice.map { Subscription(subscriptionID: $0) }
        ),
        repeatable: true,
        as: SubscriptionsResponse.self
      )
      try check(reply, answers: slice.count)
      for (name, item) in zip(slice, reply.subscriptions) { results[name] = result(item) }
    }
    return results
  }

  /// Saves a subscription.
  @discardableResult
  public func save(_ subscription: CKSubscription) async throws -> CKSubscription {
    let name = subscription.subscriptionID
    let results = try await modifySubscriptions(saving: [subscription], deleting: [])
    guard let result = results.saveResults[name] else {
      throw CKError(.internalError, "The service did not answer the save.")
    }
    return try result.get()
  }

  /// Deletes a subscription.
  @discardableResult
  public func deleteSubscription(
    withID subscriptionID: CKSubscription.ID
  ) async throws -> CKSubscription.ID {
    let results = try await modifySubscriptions(saving: [], deleting: [subscriptionID])
    try results.deleteResults[subscriptionID]?.get()
    return subscriptionID
  }

  /// Saves and deletes subscriptions; each has a result of its own.
  public func modifySubscriptions(
    saving subscriptionsToSave: [CKSubscription],
    deleting subscriptionIDsToDelete: [CKSubscription.ID]
  ) async throws -> (
    saveResults: [CKSubscription.ID: Result<CKSubscription, any Error>],
    deleteResults: [CKSubscription.ID: Result<Void, any Error>]
  ) {
    var operations: [SubscriptionOperation] = []
    for subscription in subscriptionsToSave {
      operations.append(
        SubscriptionOperation(
          operationType: .create,
          subscription: try subscription.wire(mapping)
        )
      )
    }
    for name in subscriptionIDsToDelete {
      operations.append(
        SubscriptionOperation(
          operationType: .delete,
          subscription: Subscription(subscriptionID: name)
        )
      )
    }
    var saveResults: [CKSubscription.ID: Result<CKSubscription, any Error>] = [:]
    var deleteResults: [CKSubscription.ID: Result<Void, any Error>] = [:]
    var sent = subscriptionsToSave[...]
    for slice in Self.slices(operations, of: RecordModification.operationLimit) {
      let reply = try await container.client().call(
        .modifySubscriptions,
        scope: databaseScope,
        body: ModifySubscriptionsRequest(operations: slice),
        // Saving the same subscription twice succeeds, so the request can be repeated.
        repeatable: slice.allSatisfy { $0.operationType == .create },
        as: SubscriptionsResponse.self
      )
      try check(reply, answers: slice.count)
      for (operation, item) in zip(slice, reply.subscriptions) {
        if operation.operationType == .create, let subscription = sent.popFirst() {
          saveResults[subscription.subscriptionID] = result(item, sent: subscription)
        } else if let name = operation.subscription.subscriptionID {
          deleteResults[name] = item.error.map { .failure(error($0)) } ?? .success(())
        }
      }
    }
    return (saveResults, deleteResults)
  }

  /// Refuses a reply that lacks items: it does not show that the subscriptions are missing.
  private func check(_ reply: SubscriptionsResponse, answers count: Int) throws(CKError) {
    guard reply.subscriptions.count == count else {
      throw CKError(
        inconclusive: "The service answered \(reply.subscriptions.count) of \(count) operations."
      )
    }
  }

  private func error(_ wire: ErrorDictionary) -> CKError {
    CKError(wire, mapping: mapping, zone: .default)
  }

  private func result(
    _ item: ItemResult<Subscription>,
    sent: CKSubscription? = nil
  ) -> Result<CKSubscription, any Error> {
    switch item {
    case .failure(let error):
      return .failure(self.error(error))
    case .success(let wire):
      if let subscription = sent ?? CKSubscription.subscription(wire, mapping: mapping) {
        return .success(subscription)
      }
      return .failure(CKError(.internalError, "The service sent an unknown subscription."))
    }
  }
}
