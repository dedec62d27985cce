import CloudKitWebServices

/// The filters and bytes of a user's subscriptions in one database.
///
/// Every save of a type, by any user, reads the subscriptions to it and tests their filters, so one
/// user's must not make the saves of all others slow.
struct SubscriptionBudget {
  private struct Cost {
    var filters: Int
    var bytes: Int
  }

  private let limits: ServiceLimits
  private var costs: [String: Cost] = [:]
  private var filters = 0
  private var bytes = 0

  init(_ stored: [StoredSubscription], _ limits: ServiceLimits) {
    self.limits = limits
    for subscription in stored {
      let filters = try? subscription.subscription().query?.filterBy?.count
      add(subscription.id, Cost(filters: filters ?? 0, bytes: subscription.body.count))
    }
  }

  /// Counts a saved subscription in place of the earlier one with its ID, or throws and counts
  /// nothing.
  mutating func take(_ id: String, filters: Int, bytes: Int) throws(ErrorDictionary) {
    let old = costs[id]
    release(id)
    // A subscription that needs no more than before can always be saved.
    let isMore = filters > old?.filters ?? 0 || bytes > old?.bytes ?? 0
    if isMore,
      self.filters + filters > limits.subscriptionFiltersPerUser
        || self.bytes + bytes > limits.subscriptionBytesPerUser
    {
      if let old { add(id, old) }
      throw ErrorDictionary(
        .badRequest,
        "a user's subscriptions in a database have at most "
          + "\(limits.subscriptionFiltersPerUser) filters and \(limits.subscriptionBytesPerUser) "
          + "bytes together",
        extension: ErrorExtension(code: .limitExceeded)
      )
    }
    add(id, Cost(filters: filters, bytes: bytes))
  }

  mutating func release(_ id: String) {
    guard let old = costs.removeValue(forKey: id) else { return }
    filters -= old.filters
    bytes -= old.bytes
  }

  private mutating func add(_ id: String, _ cost: Cost) {
    costs[id] = cost
    filters += cost.filters
    bytes += cost.bytes
  }
}
