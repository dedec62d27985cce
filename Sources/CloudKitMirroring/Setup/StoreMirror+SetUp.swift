import Effects
import Foundation
import Synchronization
import WatershedSQLite

extension StoreMirror {
  /// The number of objects that one write transaction of the first scan handles.
  private static let scanLimit = 500

  /// The time in seconds until a refused subscription is saved again.
  private static let subscriptionPause = 300.0

  func setUpIfNeeded() async throws {
    guard !state.withLock({ $0.account.isSetUp }) else { return }
    try await phase(.setup, type: 0, cause: "The store was loaded.") {
      try await setUp()
      return PhaseEnd(result: (), effect: "The store mirrors the zone \(options.zone).")
    }
    state.withLock { $0.account.noteSetUp() }
    log.setUp(storeIdentifier: store.identifier ?? "", url: store.url)
    startListening()
  }

  private func setUp() async throws {
    try await checkAccount()
    do {
      try await saveZoneIfNeeded()
    } catch CloudFailure.overQuota(let reason) {
      // If the zone exists, its objects are read, and this device can delete some of them. Otherwise the import
      // creates it, and fails for the same reason.
      log.detail(1, "The zone \(options.zone) was not saved: \(reason)")
    }
    try await saveSubscription()
    try context.assets.open()
    while try write(MirrorAuthor.setup, { try $0.scan(limit: Self.scanLimit) }) {
      try Task.checkCancellation()
    }
  }

  /// Checks the account if it may have changed since the round began: the work in progress belongs
  /// to the user who was signed in then.
  ///
  /// An account notification names no container, so it may concern another one.
  func checkAccountEpoch() async throws {
    while let epoch = state.withLock({ $0.account.uncheckedEpoch }) {
      try await checkAccount()
      state.withLock { $0.account.noteChecked(epoch) }
    }
  }

  /// Throws if no user, or another user than the store's, is signed in.
  ///
  /// Requests are made for the last confirmed user, so after a failure nothing is sent until a
  /// setup has found the store's own user again.
  func checkAccount() async throws {
    do {
      try await compareAccount()
    } catch {
      state.withLock { $0.account.noteFailedCheck() }
      throw error
    }
  }

  private func compareAccount() async throws {
    let user: String
    switch try await cloud.account() {
    case .available(let userRecordName): user = userRecordName
    case .none(let reason):
      let error = MirroringErrorCode.accountUnusable.error(
        "Unable to initialize without an iCloud account (CKAccountStatusNoAccount) for the container "
          + "\(options.containerIdentifier). \(reason ?? "")"
      )
      noteAccountProblem(error)
      throw error
    case .restricted:
      throw MirroringErrorCode.accountUnusable.error(
        "Unable to initialize with a restricted iCloud account (CKAccountStatusRestricted)."
      )
    case .temporarilyUnavailable(let reason):
      let error = MirroringErrorCode.accountUnusable.error(
        "The iCloud account is not usable now (CKAccountStatusTemporarilyUnavailable) for the container "
          + "\(options.containerIdentifier). \(reason ?? "")"
      )
      noteAccountProblem(error)
      throw error
    case .undetermined:
      throw CloudFailure.unreachable(
        reason: "The account could not be checked (CKAccountStatusCouldNotDetermine)."
      )
    }
    noteAccountProblem(nil)
    let (known, container) = try read {
      (try $0.text(.userRecordName), try $0.text(.containerIdentifier))
    }
    if let known, known != user, let container, container != options.containerIdentifier {
      // Users have other names in each container.
      throw MirroringErrorCode.accountChanged.error(
        "The store is mirrored with the container \(container), and its description names "
          + "\(options.containerIdentifier). Name the former container, or load another store."
      )
    }
    if let known, known != user {
      // Nothing is deleted here because another user signed in; and no data of this user is sent to
      // the other's database.
      throw MirroringErrorCode.accountChanged.error(
        "The store belongs to \(known), and \(user) is signed in. Sign in as before, or load "
          + "another store."
      )
    }
    guard known == nil || container == nil else { return }
    try write(MirrorAuthor.setup) { session in
      try session.metadata.setMeta(.userRecordName, .text(user))
      try session.metadata.setMeta(.containerIdentifier, .text(options.containerIdentifier))
    }
  }

  /// Logs why no account can be used, once for each reason, because the account is checked
  /// repeatedly.
  private func noteAccountProblem(_ error: NSError?) {
    let text = error.map { MirrorErrorText.text($0) }
    let isNew = state.withLock { $0.account.note(problem: text) }
    if isNew, let text { log.error(text) }
  }

  func saveZoneIfNeeded() async throws {
    guard try !read({ try $0.zone(options.zone).isSaved }) else { return }
    try await cloud.saveZone(options.zone)
    try write(MirrorAuthor.setup) { session in
      var zone = try session.metadata.zone(options.zone)
      zone.isSaved = true
      try session.metadata.save(zone)
    }
  }

  /// Saves the subscription; without it the feed is polled, and the subscription is saved later.
  ///
  /// A service may have no subscriptions, or may refuse one more: neither imports nor exports need it. A
  /// failure that concerns all requests meets the next one too.
  func saveSubscription() async throws {
    do {
      try await cloud.saveSubscription(options.subscription)
      state.withLock { $0.listener.nextSubscription = nil }
    } catch let failure as CloudFailure {
      let pause: Double
      switch failure {
      case .notAuthenticated, .accountChanged, .busy(_, retryAfter: .some): throw failure
      case .unreachable, .busy: pause = options.pollInterval
      default: pause = Self.subscriptionPause
      }
      let now = effects.clock.uptime
      state.withLock { $0.listener.nextSubscription = now + pause }
      journal.note(
        .setup,
        .waiting,
        cause: "The subscription was not saved: \(MirrorErrorText.text(failure))",
        effect:
          "The changes of others are polled; the subscription is saved again in \(Int(pause)) s."
      )
      log.detail(1, "No subscription: \(MirrorErrorText.text(failure))")
    }
  }

  /// Saves a subscription that is missing, if the time for it has come.
  func saveSubscriptionIfDue() async throws {
    let now = effects.clock.uptime
    guard let due = state.withLock({ $0.listener.nextSubscription }), due <= now else { return }
    try await saveSubscription()
  }

  /// Removes the files of batches that were settled by an earlier process.
  ///
  /// Called only before this mirror starts: a later setup, after a change of the account, would
  /// remove files of a schema initialization in progress or of records that the app reads.
  func removeLeftFiles() throws {
    // Another process writes the files of a batch in the transaction that stores it.
    let left = try write(MirrorAuthor.setup) { session -> [String] in
      guard try session.metadata.openBatch() == nil else { return [] }
      do {
        return try context.assets.names()
      } catch {
        // Files that cannot be removed only cost disk space.
        log.detail(1, "Left files could not be listed: \(MirrorErrorText.text(error))")
        return []
      }
    }
    context.assets.remove(left)
  }

  /// Listens for changes of others until the mirror stops, or the account may have changed.
  func startListening() {
    let number: Int? = state.withLock { state in
      guard !state.isStopped else { return nil }
      return state.listener.begin()
    }
    guard let number else { return }
    let cloud = cloud
    let task = effects.tasks.spawn { [weak self] in
      do {
        for try await _ in cloud.notifications() {
          guard let self else { return }
          self.wake(import: true, urgent: true, cause: "A notification was received.")
        }
      } catch {
        self?.log.detail(1, "Notifications ended: \(MirrorErrorText.text(error))")
      }
      // Without notifications the feed is polled; the next import listens again.
      self?.notificationsEnded(number)
    }
    let isCurrent = state.withLock { state in
      guard !state.isStopped else { return false }
      return state.listener.keep(task, of: number)
    }
    // The account changed, or the mirror stopped, while the task was started.
    if !isCurrent { task.cancel() }
  }

  private func notificationsEnded(_ number: Int) {
    let nextPoll = effects.clock.uptime + options.pollInterval
    state.withLock { $0.listener.end(number, nextPoll: nextPoll) }
    // Tasks that wait for a notification alone must also wait for the poll.
    signal.raise()
  }

  /// Ends the listener, whose channel belongs to the user who was signed in when it was opened; the next set-up
  /// starts another one.
  ///
  /// A channel that is opened while no user is signed in, or another one, stays open and never receives a
  /// notification of this store's user.
  private func stopListening() {
    let nextPoll = effects.clock.uptime + options.pollInterval
    let task = state.withLock { $0.listener.stop(nextPoll: nextPoll) }
    task?.cancel()
  }

  /// Makes the mirror run its setup again, because the account may have changed.
  package func accountMayHaveChanged() {
    stopListening()
    state.withLock { $0.account.noteChange() }
    wake(import: true, export: true, urgent: true, cause: "The account changed.")
  }

  /// Creates a zone again that is missing on the server, and sends every object again.
  func recoverLostZone(cause: String) async throws {
    // Another user's database lacks the zone too, and must not receive this user's objects.
    try await checkAccount()
    try await checkAccountEpoch()
    // The subscription may have been deleted with the zone.
    try await saveSubscription()
    let zone = try read { try $0.zone(options.zone) }
    guard zone.isSaved || zone.token != nil || zone.rereading != nil else {
      // The zone was never created, or its loss is known: there is nothing to forget.
      return try await createZone()
    }
    journal.note(
      .reset,
      .zoneLost,
      cause: cause,
      effect: "Nothing here is deleted; the zone is made again and every object is sent again."
    )
    log.error("The zone \(options.zone) is gone: \(cause) Every object is sent again.")
    context.assets.remove(try writeFolded(MirrorAuthor.reset) { try $0.forgetZone() })
    try await createZone()
  }

  /// Creates the zone, and has everything read and sent.
  private func createZone() async throws {
    try await saveZoneIfNeeded()
    state.withLock { $0.work.want(.both) }
  }
}
