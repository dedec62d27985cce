import CloudKitWebServices
import Effects
import Foundation
import Synchronization

/// Delivers commits to the listeners that wait for them.
package final class NotificationDelivery: Sendable {
  let matchers = SubscriptionMatchers()
  /// Delivers events to listeners, one at a time.
  let lane: Lane
  /// The event up to which this process's listeners were notified.
  let position: Mutex<EventPosition>
  /// Notifications of this process's commits whose delivery failed.
  let undelivered = Mutex<[CommitNotification]>([])
  private let storage: any Storage
  private let hub: NotificationHub
  private let effects: Effects
  private let onCommit: (@Sendable (CommitEvent) -> Void)?
  private let announcements = AnnouncementLedger()
  /// The incarnation of the storage to which the position belongs.
  private let incarnation: Mutex<String>
  /// Whether devices have to fetch all changes once the events can be read: the storage has another
  /// history.
  private let isLossDue = Mutex(false)
  /// When all events of the storage were last read; milliseconds since 1970.
  private let lastLook: Mutex<Int64>
  /// Milliseconds without a look at the events after which some may have expired unread.
  private let longestPause: Int64

  /// `onCommit` is called after every commit of this process to records and zones.
  init(
    storage: any Storage,
    hub: NotificationHub,
    effects: Effects,
    eventLifetime: Double,
    onCommit: (@Sendable (CommitEvent) -> Void)?
  ) throws {
    self.storage = storage
    self.hub = hub
    self.effects = effects
    self.onCommit = onCommit
    lane = effects.waitingLane("server notifications")
    lastLook = Mutex(effects.now.wireMilliseconds)
    // Half of it: the clocks of servers differ.
    longestPause = Int64(eventLifetime * 500)
    incarnation = Mutex(storage.incarnation)
    position = Mutex(try storage.newestEvent())
  }

  /// The identifier of this process in its notifications.
  var process: String { hub.run }

  /// A notification with the author and the database of a commit.
  func note(
    _ context: RequestContext,
    partition: PartitionID,
    owner: String,
    device: String?
  ) -> CommitNotification {
    CommitNotification(
      process: process,
      container: context.container,
      environment: context.environment,
      scope: context.scope == .public ? .public : .private,
      owner: owner,
      partition: partition,
      author: context.userName,
      device: device ?? context.clientID
    )
  }

  /// Writes the notification with the commit that it reports, for other processes, and for this one
  /// if the outcome of the commit is unknown.
  func post(
    _ note: inout CommitNotification,
    in batch: inout WriteBatch,
    hasSubscribers: Bool = true
  ) throws {
    let concernsOwner =
      hasSubscribers && note.scope == .private
      && note.zones.contains { $0 != ZoneID.defaultZoneName }
    guard concernsOwner || !note.isQuiet else { return }
    note.number = announcements.nextNumber()
    batch.event = WriteBatch.EventWrite(
      time: effects.now.wireMilliseconds,
      body: try WireCoding.encode(note)
    )
  }

  /// Reports a commit of this process to its observers and listeners.
  func announce(_ note: CommitNotification) {
    onCommit?(
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
    if let number = note.number, !announcements.claim(number) { return }
    do {
      try deliver(note)
    } catch {
      // The commit stays valid. The delivery is retried with the next event.
      keepUndelivered(note)
    }
  }

  private func keepUndelivered(_ note: CommitNotification) {
    undelivered.withLock { notes in
      if notes.count < Self.undeliveredLimit { notes.append(note) }
    }
  }

  /// Limits what is kept while the storage does not respond: listeners fetch changes themselves
  /// after their long poll ends.
  private static let undeliveredLimit = 1000

  /// Delivers the commits that this process has not announced: those of other processes, and its
  /// own whose outcome was unknown.
  ///
  /// Called after the storage's commit notifications, and by the maintenance. Runs in one lane, so
  /// that no event is delivered twice.
  package func deliverEvents() async throws {
    try await lane.run { [self] in try deliverEventsInLane() }
  }

  func deliverEventsInLane() throws {
    let late = undelivered.withLock { notes in
      defer { notes = [] }
      return notes
    }
    for note in late {
      do { try deliver(note) } catch { keepUndelivered(note) }
    }
    let start = effects.now.wireMilliseconds
    try followIncarnation()
    let isLate = start - lastLook.withLock { $0 } > longestPause
    try deliverStoredEvents()
    // What the devices have may be of another history, or what they lack may have expired. Only now: while
    // the storage does not answer, they could fetch nothing.
    if isLossDue.withLock({ $0 }) || isLate { hub.postLossToAll() }
    isLossDue.withLock { $0 = false }
    lastLook.withLock { $0 = start }
  }

  private func deliverStoredEvents() throws {
    while true {
      let events = try storage.events(after: position.withLock { $0 }, limit: 500)
      guard !events.isEmpty else { return }
      for event in events {
        // A server of another version wrote an event that is unreadable here: its listeners fetch
        // changes at their next opportunity.
        if let note = try? WireCoding.decode(CommitNotification.self, from: event.body) {
          try deliver(note, of: event)
        }
        // Advanced after the delivery: a failed one is retried.
        position.withLock { $0 = max($0, event.position) }
      }
    }
  }

  /// Continues with the events of another history if the storage was restored: a position of the
  /// old history may be greater than all new positions.
  private func followIncarnation() throws {
    let current = storage.incarnation
    guard incarnation.withLock({ $0 }) != current else { return }
    let newest = try storage.newestEvent()
    position.withLock { $0 = min($0, newest) }
    isLossDue.withLock { $0 = true }
    incarnation.withLock { $0 = current }
  }

  private func deliver(_ note: CommitNotification, of event: StoredEvent) throws {
    guard note.process == process, let number = note.number else {
      return try deliver(note)
    }
    guard announcements.claim(number) else { return }
    do {
      try deliver(note)
    } catch {
      announcements.release(number)
      throw error
    }
  }

  /// A notification for a user's devices.
  private struct Delivery {
    var notification: PushNotification
    var key: String?
    var user: String
  }

  /// Reads everything first, so that a failure has sent nothing.
  private func deliver(_ note: CommitNotification) throws {
    var deliveries = note.fired.map {
      Delivery(notification: $0.notification, key: nil, user: $0.user)
    }
    if note.scope == .private {
      deliveries += try ownerDeliveries(note)
      deliveries += try participantDeliveries(note)
    }
    for delivery in deliveries {
      send(delivery.notification, key: delivery.key, to: delivery.user, note)
    }
    for user in note.incomplete ?? [] { hub.postLoss(to: owner(user, note)) }
  }

  private func ownerDeliveries(_ note: CommitNotification) throws -> [Delivery] {
    let zones = note.zones.filter { $0 != ZoneID.defaultZoneName }
    guard let first = zones.first, hasListeners(note.owner, note) else { return [] }
    return try storage.subscriptions(of: note.owner, .private, note.container, note.environment)
      .compactMap { stored in
        guard let subscription = try? stored.subscription() else { return nil }
        let notification: PushNotification
        switch subscription.watched {
        case .database:
          let zone = ZoneID(zoneName: first, ownerRecordName: note.owner)
          notification = .database(subscription, .private, zone: zone)
        case .zone:
          guard let name = zones.first(where: { $0 == subscription.zoneID?.zoneName }) else {
            return nil
          }
          notification = .zone(subscription, ZoneID(zoneName: name, ownerRecordName: note.owner))
        case .query, nil: return nil
        }
        return Delivery(notification: notification, key: stored.id, user: note.owner)
      }
  }

  private func participantDeliveries(_ note: CommitNotification) throws -> [Delivery] {
    var zones: [String: String] = [:]
    for user in note.guests { zones[user] = note.zones.first ?? "" }
    if !note.shares.isEmpty {
      let names = Dictionary(
        note.shares.map { (RecordKey(zone: $0.zone, name: $0.share), $0.zoneName) },
        uniquingKeysWith: { first, _ in first }
      )
      let records = try storage.read { try $0.records(in: note.partition, keys: Array(names.keys)) }
      for (key, record) in records where !record.isDeleted {
        // An unreadable share would fail each time, and block all later events.
        guard let sharing = try? record.decodedSharing() else { continue }
        for user in sharing.state?.acceptedUsers ?? [] { zones[user] = names[key] }
      }
    }
    var deliveries: [Delivery] = []
    for (user, zoneName) in zones.sorted(by: { $0.key < $1.key }) where user != note.owner {
      guard hasListeners(user, note) else { continue }
      let zone = ZoneID(zoneName: zoneName, ownerRecordName: note.owner)
      for stored in try storage.subscriptions(
        of: user,
        .shared,
        note.container,
        note.environment
      ) {
        guard let subscription = try? stored.subscription(),
          subscription.watched == .database
        else { continue }
        deliveries.append(
          Delivery(
            notification: .database(subscription, .shared, zone: zoneName.isEmpty ? nil : zone),
            key: "shared/\(stored.id)",
            user: user
          )
        )
      }
    }
    return deliveries
  }

  private func hasListeners(_ user: String, _ note: CommitNotification) -> Bool {
    hub.hasDevices(of: owner(user, note))
  }

  private func owner(_ user: String, _ note: CommitNotification) -> NotificationHub.Owner {
    NotificationHub.Owner(container: note.container, environment: note.environment, user: user)
  }

  private func send(
    _ notification: PushNotification,
    key: String?,
    to user: String,
    _ note: CommitNotification
  ) {
    hub.post(
      notification.addressed(to: user, container: note.container, id: effects.notificationID()),
      key: key,
      to: owner(user, note),
      // A user chooses the client ID: another user's may be equal.
      except: user == note.author ? note.device : nil
    )
  }
}
