import Effects

/// Listens for changes of a database for its engine, which it holds weakly.
struct SyncEngineListener: Sendable {
  private weak let engine: CKSyncEngine?
  private let database: CKDatabase

  /// The polling interval in seconds, for engines that receive no notifications.
  private static let pollingTime = 900.0

  init(engine: CKSyncEngine) {
    self.engine = engine
    database = engine.database
  }

  /// Starts the listening task, which runs until it is cancelled.
  func start() -> SpawnedTask {
    database.effects.tasks.spawn { await listen() }
  }

  private func listen() async {
    let clock = database.effects.clock
    while !Task.isCancelled, engine != nil {
      do {
        let channel = try database.container.pushChannel()
        while true { handle(try await channel.next()) }
      } catch CKError.operationCancelled {
        return
      } catch {
        // No notifications, since no user is signed in or push is turned off: poll.
        guard (try? await clock.sleep(seconds: Self.pollingTime)) != nil else { return }
        engine?.request(.fetch)
      }
    }
  }

  private func handle(_ event: PushEvent) {
    guard let engine else { return }
    switch event {
    case .connected:
      engine.request(.fetch)
    case .changed(let scope, let zoneID, _):
      guard scope == nil || scope == database.databaseScope else { return }
      if scope != nil, let zoneID { engine.state.update { $0.noteChanges(in: zoneID) } }
      engine.request(.fetch)
    }
  }
}
