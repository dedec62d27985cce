import Foundation

/// Saves and deletes subscriptions.
public final class CKModifySubscriptionsOperation: CKDatabaseOperation, @unchecked Sendable {
  // Unchecked: set before the operation is queued.

  /// The subscriptions to save.
  public var subscriptionsToSave: [CKSubscription]?
  /// The subscriptions to delete.
  public var subscriptionIDsToDelete: [CKSubscription.ID]?
  /// Called with the outcome of each save.
  public var perSubscriptionSaveBlock:
    ((CKSubscription.ID, Result<CKSubscription, any Error>) -> Void)?
  /// Called with the outcome of each delete.
  public var perSubscriptionDeleteBlock: ((CKSubscription.ID, Result<Void, any Error>) -> Void)?
  /// Called at the end.
  public var modifySubscriptionsResultBlock: ((Result<Void, any Error>) -> Void)?

  /// Called at the end, with what was saved and deleted.
  @available(*, deprecated, renamed: "modifySubscriptionsResultBlock")
  public var modifySubscriptionsCompletionBlock:
    (([CKSubscription]?, [CKSubscription.ID]?, (any Error)?) -> Void)?
  {
    get { olderBlock }
    set { olderBlock = newValue }
  }
  private var olderBlock: (([CKSubscription]?, [CKSubscription.ID]?, (any Error)?) -> Void)?

  /// Creates an empty operation.
  public override init() {
    super.init()
  }

  /// Creates an operation.
  public convenience init(
    subscriptionsToSave: [CKSubscription]? = nil,
    subscriptionIDsToDelete: [CKSubscription.ID]? = nil
  ) {
    self.init()
    self.subscriptionsToSave = subscriptionsToSave
    self.subscriptionIDsToDelete = subscriptionIDsToDelete
  }

  override func run() async {
    do {
      try checkCancellation()
      let results = try await target.modifySubscriptions(
        saving: subscriptionsToSave ?? [],
        deleting: subscriptionIDsToDelete ?? []
      )
      var errors: [AnyHashable: any Error] = [:]
      for subscription in subscriptionsToSave ?? [] {
        guard let result = results.saveResults[subscription.subscriptionID] else { continue }
        if case .failure(let error) = result { errors[subscription.subscriptionID] = error }
        perSubscriptionSaveBlock?(subscription.subscriptionID, result)
      }
      for subscriptionID in subscriptionIDsToDelete ?? [] {
        guard let result = results.deleteResults[subscriptionID] else { continue }
        if case .failure(let error) = result { errors[subscriptionID] = error }
        perSubscriptionDeleteBlock?(subscriptionID, result)
      }
      let outcome = Self.result(errors)
      modifySubscriptionsResultBlock?(outcome)
      olderBlock?(
        (subscriptionsToSave ?? []).filter { errors[$0.subscriptionID] == nil },
        (subscriptionIDsToDelete ?? []).filter { errors[$0] == nil },
        outcome.error
      )
    } catch {
      modifySubscriptionsResultBlock?(.failure(error))
      olderBlock?(nil, nil, error)
    }
  }
}
