import CloudKitWebServices

extension Subscription {
  /// A subscription to records of one type that match all filters.
  static func toRecords(
    _ subscriptionID: String? = nil,
    of type: String = "Note",
    where filters: [QueryFilter]?,
    firesOn: [String] = ["create"],
    alert: String? = nil
  ) -> Subscription {
    Subscription(
      subscriptionID: subscriptionID,
      subscriptionType: .query,
      query: RecordQuery(recordType: type, filterBy: filters),
      firesOn: firesOn,
      notificationInfo: alert.map { NotificationInfo(alertBody: $0) }
    )
  }
}
