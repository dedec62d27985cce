import Foundation

/// Fetches subscriptions.
public final class CKFetchSubscriptionsOperation: CKDatabaseOperation, @unchecked Sendable {
  // Unchecked: set before the operation is queued.

  /// The subscriptions to fetch, or nothing for all.
  public var subscriptionIDs: [CKSubscription.ID]?
  /// Called with the outcome of each subscription.
  public var perSubscriptionResultBlock:
    ((CKSubscription.ID, Result<CKSubscription, any Error>) -> Void)?
  /// Called at the end.
  public var fetchSubscriptionsResultBlock: ((Result<Void, any Error>) -> Void)?

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
      var errors: [AnyHashable: any Error] = [:]
      if let ids = subscriptionIDs {
        let results = try await target.subscriptions(for: ids)
        for id in ids {
          guard let result = results[id] else { continue }
          if case .failure(let error) = result { errors[id] = error }
          perSubscriptionResultBlock?(id, result)
        }
      } else {
        for found in try await target.allSubscriptions() {
          perSubscriptionResultBlock?(found.subscriptionID, .success(found))
        }
      }
      fetchSubscriptionsResultBlock?(Self.result(errors))
    } catch {
      fetchSubscriptionsResultBlock?(.failure(error))
    }
  }
}
