import CloudKitWebServices

/// The notifications that one commit may write to the outbox.
///
/// The outbox is outside of all quotas, and each process reads it: its size must not be the product
/// of a batch's records, the subscriptions that match them, and what their texts grow to.
struct FiringBudget {
  private struct Share {
    var count = 0
    var bytes = 0
  }

  private let limits: ServiceLimits
  private let mostBytes: Int
  private var shares: [String: Share] = [:]
  private var bytes = 0
  /// The users whose further notifications were dropped: their devices fetch all changes.
  private(set) var exceeded: Set<String> = []

  /// The budget of a commit whose author may cause `allowed` bytes of notifications.
  init(_ limits: ServiceLimits, bytes allowed: Int = .max) {
    self.limits = limits
    mostBytes = min(limits.notificationBytesPerCommit, allowed)
  }

  /// Whether one more notification may be sent to a user.
  ///
  /// When the bytes of the commit or of its author are used up, each further user receives one
  /// notification.
  mutating func hasPlace(for user: String) -> Bool {
    let count = shares[user]?.count ?? 0
    let most = bytes < mostBytes ? limits.notificationsPerCommit : 1
    guard count >= most else { return true }
    exceeded.insert(user)
    return false
  }

  /// Counts a notification and returns it, without its texts and fields if these exceed a limit.
  mutating func admit(_ notification: PushNotification, for user: String) -> PushNotification {
    var share = shares[user] ?? Share()
    let size = notification.approximateSize
    let isWhole =
      size <= limits.notificationSize
      && share.bytes + size <= limits.notificationBytesPerPerson
      && bytes + size <= mostBytes
    let admitted = isWhole ? notification : notification.pruned
    share.count += 1
    share.bytes += isWhole ? size : admitted.approximateSize
    bytes += isWhole ? size : admitted.approximateSize
    shares[user] = share
    return admitted
  }
}

extension PushNotification {
  /// The bytes of the texts, and an allowance for the members around them.
  var approximateSize: Int {
    let text = aps?.alert
    let source = ck?.qry ?? ck?.fet ?? ck?.met
    var texts = [
      text?.body, text?.localizationKey, text?.actionLocalizationKey, text?.launchImage,
      aps?.sound, aps?.category, source?.sid, source?.rid, source?.zid, source?.zoid,
    ].compactMap(\.self)
    texts += text?.localizationArguments ?? []
    for (name, value) in source?.af ?? [:] { texts += [name, value.text] }
    return texts.reduce(128) { $0 + $1.utf8.count + 4 }
  }

  /// The notification as a silent one without fields, as Apple's service prunes large payloads: the
  /// app fetches the record.
  var pruned: PushNotification {
    var notification = self
    notification.aps = Alert(contentAvailable: 1)
    notification.ck?.qry?.af = nil
    notification.ck?.pruned = true
    return notification
  }
}
