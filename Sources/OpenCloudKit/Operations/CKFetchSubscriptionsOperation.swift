import Foundation

/// Fetches subscriptions.
public final class CKFetchSubscriptionsOperation: CKDatabaseOperation, @unchecked Sendable {
  // Unchecked: set before the operation is queued.

  /// The subscriptions to fetch, or nil for all.
  public var subscriptionIDs: [CKSubscription.ID]?
  /// Called with the outcome of each subscription.
  public var perSubscriptionResultBlock:
    ((CKSubscription.ID, Result<CKSubscription, any Error>) -> Void)?
  /// Called at the end.
  public var fetchSubscriptionsResultBlock: ((Result<Void, any Error>) -> Void)?

  /// Called at the end, with what was found.
  @available(*, deprecated, renamed: "fetchSubscriptionsResultBlock")
  public var fetchSubscriptionCompletionBlock:
    (([CKSubscription.ID: CKSubscription]?, (any Error)?) -> Void)?
  {
    get { olderBlock }
    set { olderBlock = newValue }
  }
  private var olderBlock: (([CKSubscription.ID: CKSubscription]?, (any Error)?) -> Void)?

  /// Creates an operation that fetches all subscriptions.
  public override init() {
    super.init()
  }

  /// Creates an operation.
  public convenience init(subscriptionIDs: [CKSubscription.ID]) {
    self.init()
    self.subscriptionIDs = subscriptionIDs
  }

  /// Creates an operation that fetches all subscriptions.
  public class func fetchAllSubscriptionsOperation() -> CKFetchSubscriptionsOperation {
    CKFetchSubscriptionsOperation()
  }

  override func run() async {
    do {
      try checkCancellation()
      var errors: [AnyHashable: any Error] = [:]
      var subscriptions: [CKSubscription.ID: CKSubscription] = [:]
      if let ids = subscriptionIDs {
        let results = try await target.subscriptions(for: ids)
        for id in ids {
          guard let result = results[id] else { continue }
          if case .failure(let error) = result { errors[id] = error }
          subscriptions[id] = try? result.get()
          perSubscriptionResultBlock?(id, result)
        }
      } else {
        for found in try await target.allSubscriptions() {
          subscriptions[found.subscriptionID] = found
          perSubscriptionResultBlock?(found.subscriptionID, .success(found))
        }
      }
      let outcome = Self.result(errors)
      fetchSubscriptionsResultBlock?(outcome)
      olderBlock?(subscriptions, outcome.error)
    } catch {
      fetchSubscriptionsResultBlock?(.failure(error))
      olderBlock?(nil, error)
    }
  }
}
