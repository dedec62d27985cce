import CloudKitWebServices
import Foundation

/// From a commit to those who wait for it.
extension CloudKitService {
  /// A note that says who made a commit and where.
  func note(
    _ context: RequestContext,
    partition: PartitionID,
    owner: String,
    device: String?
  ) -> CommitNote {
    CommitNote(
      process: notifications.run,
      container: context.container,
      environment: context.environment,
      scope: context.scope == .public ? .public : .private,
      owner: owner,
      partition: partition,
      author: context.reader,
      device: device ?? context.clientID
    )
  }

  /// Writes the note with the commit that it tells of, for other processes and for nobody else.
  func post(
    _ note: CommitNote,
    in batch: inout WriteBatch,
    hasSubscribers: Bool = true
  ) throws {
    let concernsOwner =
      hasSubscribers && note.scope == .private
      && note.zones.contains { $0 != ZoneID.defaultZoneName }
    guard concernsOwner || !note.isQuiet else { return }
    batch.event = WriteBatch.EventWrite(time: now, body: try WireCoding.encode(note))
  }

  /// Tells watchers and listeners of this process of a commit it made.
  func announce(_ note: CommitNote) {
    configuration.onCommit?(
      CommitEvent(
        container: note.container,
        environment: note.environment,
        database: note.scope,
        zones: note.zones,
        userRecordName: note.author,
        savedCount: note.savedCount,
        deletedCount: note.deletedCount
      )
    )
    deliver(note)
  }

  /// Tells listeners of this process of the commits of others; where it is called, and how often,
  /// is the storage's business: on its word, and now and then.
  package func deliverNews() throws {
    while true {
      let position = newsPosition.withLock { $0 }
      let events = try storage.events(after: position, limit: 500)
      guard let last = events.last else { return }
      newsPosition.withLock { $0 = max($0, last.position) }
      for event in events {
        // One that cannot be read is of another version: who missed it looks at its next chance.
        guard let note = try? WireCoding.decode(CommitNote.self, from: event.body),
          note.process != notifications.run
        else { continue }
        deliver(note)
      }
    }
  }

  /// What is committed stays committed: a failure here only delays somebody's next look.
  private func deliver(_ note: CommitNote) {
    for fired in note.fired {
      send(fired.notification, key: nil, to: fired.user, note)
    }
    if note.scope == .private {
      try? deliverToOwner(note)
      try? deliverToParticipants(note)
    }
  }

  private func deliverToOwner(_ note: CommitNote) throws {
    let zones = note.zones.filter { $0 != ZoneID.defaultZoneName }
    guard let first = zones.first, hasListeners(note.owner, note) else { return }
    for stored in try subscriptions(of: note.owner, .private, note.container, note.environment) {
      guard let subscription = try? stored.subscription() else { continue }
      switch subscription.watched {
      case .database:
        let zone = ZoneID(zoneName: first, ownerRecordName: note.owner)
        send(.database(subscription, .private, zone: zone), key: stored.id, to: note.owner, note)
      case .zone:
        guard let name = zones.first(where: { $0 == subscription.zoneID?.zoneName }) else {
          continue
        }
        let zone = ZoneID(zoneName: name, ownerRecordName: note.owner)
        send(.zone(subscription, zone), key: stored.id, to: note.owner, note)
      case .query, nil: continue
      }
    }
  }

  private func deliverToParticipants(_ note: CommitNote) throws {
    var zones: [String: String] = [:]
    for user in note.guests { zones[user] = note.zones.first ?? "" }
    if !note.shares.isEmpty {
      let names = Dictionary(
        note.shares.map { (RecordKey(zone: $0.zone, name: $0.share), $0.zoneName) },
        uniquingKeysWith: { first, _ in first }
      )
      let records = try storage.read { try $0.records(in: note.partition, keys: Array(names.keys)) }
      for (key, record) in records where !record.isDeleted {
        for user in try record.decodedSharing()?.state?.acceptedUsers ?? [] {
          zones[user] = names[key]
        }
      }
    }
    for (user, zoneName) in zones.sorted(by: { $0.key < $1.key }) where user != note.owner {
      guard hasListeners(user, note) else { continue }
      let zone = ZoneID(zoneName: zoneName, ownerRecordName: note.owner)
      for stored in try subscriptions(of: user, .shared, note.container, note.environment) {
        guard let subscription = try? stored.subscription(),
          subscription.watched == .database
        else { continue }
        send(
          .database(subscription, .shared, zone: zoneName.isEmpty ? nil : zone),
          key: "shared/\(stored.id)",
          to: user,
          note
        )
      }
    }
  }

  private func hasListeners(_ user: String, _ note: CommitNote) -> Bool {
    notifications.hasDevices(of: owner(user, note))
  }

  private func owner(_ user: String, _ note: CommitNote) -> NotificationHub.Owner {
    NotificationHub.Owner(container: note.container, environment: note.environment, user: user)
  }

  private func send(
    _ notification: PushNotification,
    key: String?,
    to user: String,
    _ note: CommitNote
  ) {
    notifications.post(
      notification.addressed(to: user, container: note.container, id: notificationID()),
      key: key,
      to: owner(user, note),
      // A client ID is its user's own choice: another person's may be the same.
      except: user == note.author ? note.device : nil
    )
  }
}
