/// The subscriptions that one save reads.
///
/// In a public database everyone may subscribe to a type, and each save of it reads the subscriptions in the lane of the
/// writers. Beyond a limit of bytes those of the users with the most bytes are not read.
struct ReadSubscriptions {
  var owned: [OwnedSubscription]
  /// The users whose subscriptions were not read: their devices fetch all changes.
  var unread: [String] = []

  init(
    in id: PartitionID,
    types: [String],
    mostBytes: Int?,
    _ snapshot: any StorageSnapshot
  ) throws {
    guard let mostBytes else {
      owned = try snapshot.subscriptions(in: id, types: types, users: nil)
      return
    }
    let sizes = try snapshot.subscriptionSizes(in: id, types: types).map {
      (user: $0.user, bytes: $0.bytes + $0.count * SubscriptionMatchers.entrySize)
    }
    guard sizes.reduce(0, { $0 + $1.bytes }) > mostBytes else {
      owned = sizes.isEmpty ? [] : try snapshot.subscriptions(in: id, types: types, users: nil)
      return
    }
    var users: [String] = []
    var left = mostBytes
    for (user, bytes) in sizes.sorted(by: { ($0.bytes, $0.user) < ($1.bytes, $1.user) }) {
      left -= bytes
      if left >= 0 { users.append(user) } else { unread.append(user) }
    }
    owned = try snapshot.subscriptions(in: id, types: types, users: users)
  }
}
