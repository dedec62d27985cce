import CloudKitWebServices
import Foundation

/// The notifications of a batch of record operations.
extension ModifyCall {
  func note(
    of plan: ModifyPlan,
    _ batch: inout WriteBatch,
    _ input: ModifyInput,
    zones: [String]
  ) throws -> CommitNotification {
    var note = parts.delivery.note(context, partition: id, owner: database.owner, device: device)
    note.zones = zones
    note.savedCount = plan.savedCount
    note.deletedCount = plan.deletedCount
    for share in plan.touchedShares.sorted(by: { $0.name < $1.name }) {
      guard let zone = input.sharing.zoneNames[share.zone] else { continue }
      note.shares.append(
        CommitNotification.TouchedShare(zone: share.zone, zoneName: zone, share: share.name)
      )
    }
    note.guests = try guests(batch, input)
    try fire(in: &batch, input, &note)
    return note
  }

  /// The users whose participation ends with this commit.
  private func guests(_ batch: WriteBatch, _ input: ModifyInput) throws -> [String] {
    var guests: Set<String> = []
    for record in batch.records where record.isShare {
      let old = try input.existing[record.key]?.decodedSharing()?.state?.acceptedUsers ?? []
      let new = record.isDeleted ? [] : try record.decodedSharing()?.state?.acceptedUsers ?? []
      guests.formUnion(old.subtracting(new))
    }
    return guests.subtracting([database.owner]).sorted()
  }

  // MARK: Queries

  /// Matches query subscriptions with the records before and after the batch.
  private func fire(
    in batch: inout WriteBatch,
    _ input: ModifyInput,
    _ note: inout CommitNotification
  ) throws {
    let queries = input.subscriptions.owned.filter { !$0.subscription.recordType.isEmpty }
    guard !queries.isEmpty || !input.subscriptions.unread.isEmpty else { return }
    let schema = batch.schema?.stored.schema ?? input.schema.schema
    let access = RecordAccess(scope: context.scope, schema: schema)
    let events = try events(batch, input)
    let scan = SubscriptionScan(
      queries,
      events: events,
      mostTests: parts.limits.subscriptionTestsPerSave
    ) { owned in
      schema[recordType: owned.subscription.recordType].flatMap {
        parts.delivery.matchers.matcher(of: owned, $0, context)
      }
    }
    var firedOnce: Set<String> = []
    var budget = FiringBudget(parts.limits, bytes: notificationBytes)
    for var event in events {
      /// The filters of each user that were tested with the event.
      var tested: [String: Int] = [:]
      for listener in scan.listeners(to: event.type) {
        let (owned, matcher) = (listener.owned, listener.matcher)
        if matcher.subscription.firesOnce == true, firedOnce.contains(listener.key) { continue }
        // A user who has more filters had them before their number was limited.
        let count = tested[owned.user, default: 0] + matcher.filterCount
        guard count <= parts.limits.subscriptionFiltersPerUser else { continue }
        tested[owned.user] = count
        guard let fields = matcher.match(&event, access) else { continue }
        guard budget.hasPlace(for: owned.user) else { continue }
        let subscription = matcher.subscription
        let notification = PushNotification.query(
          subscription,
          event.reason,
          record: event.key.name,
          zone: ZoneDirectory.id(named: event.zoneName, owner: database.owner),
          scope: context.scope == .public ? .public : .private,
          fields: fields
        )
        note.fired.append(
          CommitNotification.Fired(
            user: owned.user,
            subscription: owned.subscription.id,
            notification: budget.admit(notification, for: owned.user)
          )
        )
        guard subscription.firesOnce == true else { continue }
        firedOnce.insert(listener.key)
        batch.deletedSubscriptions.append(
          WriteBatch.SubscriptionWrite(user: owned.user, subscription: owned.subscription)
        )
      }
    }
    let missed = budget.exceeded.union(scan.untested).union(input.subscriptions.unread)
    if !missed.isEmpty { note.incomplete = missed.sorted() }
  }

  private func events(_ batch: WriteBatch, _ input: ModifyInput) throws -> [RecordEvent] {
    func living(_ key: RecordKey) -> StoredRecord? {
      input.existing[key].flatMap { $0.isDeleted ? nil : $0 }
    }
    func zoneName(_ key: RecordKey) -> String {
      input.sharing.zoneNames[key.zone] ?? ZoneID.defaultZoneName
    }
    var events: [RecordEvent] = []
    for record in batch.records {
      let before = living(record.key)
      // A root whose share began or ended keeps its tag: no user saved it.
      guard before?.tag != record.tag else { continue }
      events.append(
        RecordEvent(
          before: before,
          after: record.isDeleted ? nil : record,
          zoneName: zoneName(record.key)
        )
      )
    }
    for key in batch.erasedRecords {
      events.append(RecordEvent(before: living(key), after: nil, zoneName: zoneName(key)))
    }
    return events
  }
}

/// The change of one record by a commit.
struct RecordEvent {
  var before: StoredRecord?
  var after: StoredRecord?
  var zoneName: String

  var key: RecordKey {
    after?.key ?? before?.key ?? RecordKey(zone: .defaultZone, name: "")
  }

  var type: String { after?.type ?? before?.type ?? "" }

  /// The records before and after, decoded once for all subscriptions.
  private var decoded: [ComparedRecord]?

  init(before: StoredRecord?, after: StoredRecord?, zoneName: String) {
    self.before = before
    self.after = after
    self.zoneName = zoneName
  }

  /// The fields of the first record, newer one first, that the body accepts.
  ///
  /// The records keep their words and values for the next subscription.
  mutating func firstFields(
    where body: (inout ComparedRecord) -> Bool
  ) -> [String: FieldValue]? {
    var states =
      decoded
      ?? [after, before].compactMap { record in
        record.flatMap { record in
          (try? record.decodedFields()).map { ComparedRecord(record, $0) }
        }
      }
    // One copy only: a second one would copy the words with each change.
    decoded = nil
    defer { decoded = states }
    for index in states.indices where body(&states[index]) { return states[index].fields }
    return nil
  }

  /// The number of fields whose words or values were computed for subscriptions.
  var computedFields: Int { decoded?.reduce(0) { $0 + $1.computedFields } ?? 0 }

  var reason: PushNotification.Reason {
    if after == nil { return .deleted }
    return before == nil ? .created : .updated
  }
}

extension ShareState {
  /// The users who see what is shared.
  var acceptedUsers: Set<String> {
    Set(participants.filter { permission(of: $0).canRead }.compactMap(\.user))
  }
}
