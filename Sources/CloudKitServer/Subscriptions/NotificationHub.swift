import CloudKitWebServices
import Effects
import Foundation
import Synchronization

/// Brings notifications to the polls and streams that wait for them.
///
/// A commit wakes its devices directly: nothing here looks again and again. A listener costs a
/// continuation and a few words; one task ends the waits of all of them when their time is over.
final class NotificationHub: Sendable {
  /// What a listener gets when its wait ends.
  enum Delivery: Sendable {
    case entries([NotificationLog.Entry])
    /// Something was lost: fetch everything that changed, and listen on from this number.
    case resync(Int64)
    /// Nothing came in time.
    case nothing
    case closed
  }

  /// Whose device it is.
  struct Owner: Hashable, Sendable {
    var container: String
    var environment: ContainerEnvironment
    var user: String
  }

  /// Notifications kept for a device that is not listening.
  static let logLimit = 256
  /// Seconds after which a device that does not listen is forgotten here; it is told to look when it
  /// comes back.
  private static let idleTime = 3600.0

  private struct Listener {
    /// Nil: a poll, which takes one notification away; else a stream that has read up to here.
    var position: Int64?
    /// Called once, on any thread and without a lock held.
    var serve: @Sendable (Delivery) -> Void
  }

  private struct Device {
    var owner: Owner?
    var clientID: String?
    var log: NotificationLog
    /// What polls have taken.
    var polled: Int64
    var listeners: [UInt64: Listener] = [:]
    /// A stream was opened: what a poll takes away stays for it.
    var hasStreams = false
    /// It has listened since the server started.
    var hasListened = false
    var lastUse: Double
  }

  private struct Deadline {
    var time: Double
    var listener: UInt64
    var token: String
  }

  private struct State {
    var devices: [String: Device] = [:]
    var byOwner: [Owner: Set<String>] = [:]
    /// The number at which logs begin, above every number of devices that were removed in this run.
    ///
    /// A device that comes back with a number of its former log has to fetch: it lies before.
    var firstNumber: Int64 = 0
    /// When idle devices were forgotten last.
    var lastSweep = 0.0
    var nextListener: UInt64 = 0
    /// Waits that are about to be registered.
    var beginning: Set<UInt64> = []
    /// Those of them that were cancelled before they were registered.
    var cancelled: Set<UInt64> = []
    /// In the order of time, for all waits last equally long; those before `nextDeadline` are over.
    var deadlines: [Deadline] = []
    var nextDeadline = 0
    var ticking: SpawnedTask?
    var isClosed = false
  }

  private let state = Mutex(State())
  private let effects: Effects
  /// Seconds.
  private let timeout: Double
  private let deviceLimit: Int
  /// Numbers of another run of the server mean nothing to this one.
  let run: String

  init(effects: Effects, timeout: Double, deviceLimit: Int = 100_000) {
    self.effects = effects
    self.timeout = timeout
    self.deviceLimit = deviceLimit
    run = effects.randomness.bytes(6).hexadecimal
  }

  // MARK: Devices

  /// Notes a device, so that what is for its owner is kept for it.
  func note(_ stored: StoredDevice) {
    state.withLock { state in
      let owner = stored.userRecordName.map {
        Owner(container: stored.container, environment: stored.environment, user: $0)
      }
      if state.devices[stored.token] == nil {
        makeRoom(&state)
        state.devices[stored.token] = Device(
          log: NotificationLog(startingAt: state.firstNumber),
          polled: state.firstNumber,
          lastUse: effects.clock.uptime
        )
      }
      let known = state.devices[stored.token]?.owner
      if known != owner {
        if let known { forget(stored.token, of: known, &state) }
        if let owner { state.byOwner[owner, default: []].insert(stored.token) }
      }
      state.devices[stored.token]?.owner = owner
      state.devices[stored.token]?.clientID = stored.clientID
    }
  }

  /// A device that was given its token a moment ago has missed nothing.
  func noteNothingMissed(by token: String) { noteListening(of: token) }

  /// Notes that a device listens and was given what it may have missed.
  func noteListening(of token: String) {
    state.withLock { $0.devices[token]?.hasListened = true }
  }

  /// True when a device listens for the first time since the start: what came before may be lost.
  func isFirstListening(of token: String) -> Bool {
    state.withLock { $0.devices[token]?.hasListened == false }
  }

  /// The devices of people, by the digests of their tokens.
  var ownedDevices: [String] {
    state.withLock { state in state.byOwner.values.flatMap { $0 } }
  }

  /// Ends what listens for a device and forgets what is kept for it.
  func end(_ token: String) {
    let listeners = state.withLock { state -> [Listener] in
      guard let device = remove(token, &state) else { return [] }
      if let owner = device.owner { forget(token, of: owner, &state) }
      return Array(device.listeners.values)
    }
    for listener in listeners { listener.serve(.closed) }
  }

  @discardableResult
  private func remove(_ token: String, _ state: inout State) -> Device? {
    guard let device = state.devices.removeValue(forKey: token) else { return nil }
    state.firstNumber = max(state.firstNumber, device.log.newest + 1)
    return device
  }

  private func forget(_ token: String, of owner: Owner, _ state: inout State) {
    state.byOwner[owner]?.remove(token)
    if state.byOwner[owner]?.isEmpty == true { state.byOwner[owner] = nil }
  }

  /// Forgets devices that have not listened for longest; they are told to look when they come back.
  private func makeRoom(_ state: inout State) {
    let now = effects.clock.uptime
    if now - state.lastSweep >= Self.idleTime / 10 {
      state.lastSweep = now
      for (token, device) in state.devices
      where device.listeners.isEmpty && now - device.lastUse > Self.idleTime {
        if let owner = device.owner { forget(token, of: owner, &state) }
        remove(token, &state)
      }
    }
    guard state.devices.count >= deviceLimit else { return }
    let idle = state.devices.filter { $0.value.listeners.isEmpty }
      .sorted { $0.value.lastUse < $1.value.lastUse }
    for (token, device) in idle.prefix(deviceLimit / 10 + 1) {
      if let owner = device.owner { forget(token, of: owner, &state) }
      remove(token, &state)
    }
  }

  // MARK: Posting

  /// Whether anybody here waits for news of a person.
  func hasDevices(of owner: Owner) -> Bool { state.withLock { $0.byOwner[owner] != nil } }

  /// Hands a notification to a person's devices, but not to the one that caused it.
  ///
  /// Of those with one key only the newest is kept: it says that there is something to fetch.
  func post(
    _ notification: PushNotification,
    key: String?,
    to owner: Owner,
    except clientID: String? = nil
  ) {
    let served = state.withLock { state in
      (state.byOwner[owner] ?? []).flatMap { token -> [(Listener, Delivery)] in
        guard clientID == nil || state.devices[token]?.clientID != clientID else { return [] }
        return post(notification, key: key, token, &state)
      }
    }
    for (listener, delivery) in served { listener.serve(delivery) }
  }

  /// Hands a notification to one device.
  func post(_ notification: PushNotification, key: String?, to token: String) {
    let served = state.withLock { post(notification, key: key, token, &$0) }
    for (listener, delivery) in served { listener.serve(delivery) }
  }

  private func post(
    _ notification: PushNotification,
    key: String?,
    _ token: String,
    _ state: inout State
  ) -> [(Listener, Delivery)] {
    // Taken out and put back: a device that is in two places has its log copied.
    guard !state.isClosed, var device = state.devices.removeValue(forKey: token) else { return [] }
    device.log.append(notification, key: key, limit: Self.logLimit)
    var served: [(Listener, Delivery)] = []
    // The oldest poll of a device first.
    for id in device.listeners.keys.sorted() {
      guard let listener = device.listeners[id],
        let delivery = delivery(listener.position, &device)
      else { continue }
      device.listeners[id] = nil
      served.append((listener, delivery))
    }
    state.devices[token] = device
    return served
  }

  /// What a listener can have at once.
  private func delivery(_ position: Int64?, _ device: inout Device) -> Delivery? {
    guard let position else {
      guard let entry = device.log.next(after: device.polled) else { return nil }
      device.polled = entry.number
      if !device.hasStreams { device.log.forget(through: entry.number) }
      return .entries([entry])
    }
    switch device.log.missed(after: position) {
    case .nothing: return nil
    case .entries(let entries): return .entries(Array(entries))
    case .resync(let number): return .resync(number)
    }
  }

  // MARK: Waiting

  /// The next notification of a device, which no other poll gets.
  func poll(_ token: String) async -> Delivery { await wait(token, after: nil) }

  /// What a stream that has read up to a number gets next.
  func stream(_ token: String, after number: Int64) async -> Delivery {
    await wait(token, after: number)
  }

  /// The same for whoever has no task to suspend; returns what ends the wait early, with nothing.
  func stream(
    _ token: String,
    after number: Int64,
    _ serve: @escaping @Sendable (Delivery) -> Void
  ) -> EventWait {
    let id = beginWait(token)
    begin(Listener(position: number, serve: serve), id, token)
    return EventWait(hub: self, listener: id, token: token)
  }

  /// Where a stream begins that knows nothing: everything that is kept for the device is new to it.
  func beginStream(_ token: String) -> Int64 {
    state.withLock { state in
      state.devices[token]?.hasStreams = true
      return state.devices[token]?.log.beginning ?? 0
    }
  }

  private func wait(_ token: String, after position: Int64?) async -> Delivery {
    let id = beginWait(token)
    return await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        begin(Listener(position: position) { continuation.resume(returning: $0) }, id, token)
      }
    } onCancel: {
      end(id, token)
    }
  }

  private func beginWait(_ token: String) -> UInt64 {
    state.withLock { state in
      state.nextListener += 1
      state.beginning.insert(state.nextListener)
      state.devices[token]?.lastUse = effects.clock.uptime
      return state.nextListener
    }
  }

  private func begin(_ listener: Listener, _ id: UInt64, _ token: String) {
    if let ready = register(listener, id, token) { listener.serve(ready) }
  }

  private func register(_ listener: Listener, _ id: UInt64, _ token: String) -> Delivery? {
    state.withLock { state in
      state.beginning.remove(id)
      if state.isClosed { return .closed }
      if state.cancelled.remove(id) != nil { return .nothing }
      guard var device = state.devices[token] else { return .closed }
      if let ready = delivery(listener.position, &device) {
        state.devices[token] = device
        return ready
      }
      guard timeout > 0 else { return .nothing }
      state.devices[token]?.listeners[id] = listener
      state.deadlines.append(
        Deadline(time: effects.clock.uptime + timeout, listener: id, token: token)
      )
      if state.ticking == nil {
        state.ticking = effects.tasks.spawn { [weak self] in await self?.tick() }
      }
      return nil
    }
  }

  /// Ends one wait with nothing, whether it has begun or is about to.
  fileprivate func end(_ id: UInt64, _ token: String) {
    let listener = state.withLock { state -> Listener? in
      if let listener = state.devices[token]?.listeners.removeValue(forKey: id) { return listener }
      // Not there: served already, or not registered yet; then it must not begin.
      if state.beginning.contains(id) { state.cancelled.insert(id) }
      return nil
    }
    listener?.serve(.nothing)
  }

  /// Ends waits whose time is over, as long as there are any.
  private func tick() async {
    while let seconds = endDueWaits() {
      // At most four times a second, however many waits there are.
      do { try await effects.clock.sleep(seconds: max(seconds, 0.25)) } catch { return }
    }
  }

  /// Returns the seconds to the next deadline; nil when nobody waits.
  private func endDueWaits() -> Double? {
    let (due, seconds) = state.withLock { state -> ([Listener], Double?) in
      let now = effects.clock.uptime
      var due: [Listener] = []
      while state.nextDeadline < state.deadlines.count {
        let deadline = state.deadlines[state.nextDeadline]
        let isWaiting = state.devices[deadline.token]?.listeners[deadline.listener] != nil
        guard deadline.time <= now || !isWaiting else { break }
        state.nextDeadline += 1
        if let listener = state.devices[deadline.token]?.listeners
          .removeValue(forKey: deadline.listener)
        {
          due.append(listener)
        }
      }
      if state.nextDeadline > 1024, state.nextDeadline * 2 > state.deadlines.count {
        state.deadlines.removeFirst(state.nextDeadline)
        state.nextDeadline = 0
      }
      guard state.nextDeadline < state.deadlines.count, !state.isClosed else {
        state.deadlines = []
        state.nextDeadline = 0
        state.ticking = nil
        return (due, nil)
      }
      return (due, state.deadlines[state.nextDeadline].time - now)
    }
    for listener in due { listener.serve(.nothing) }
    return seconds
  }

  /// Ends every wait; later ones end at once.
  func close() {
    let (listeners, ticking) = state.withLock { state in
      state.isClosed = true
      let listeners = state.devices.values.flatMap(\.listeners.values)
      state.devices.removeAll()
      state.byOwner.removeAll()
      defer { state.ticking = nil }
      return (listeners, state.ticking)
    }
    ticking?.cancel()
    for listener in listeners { listener.serve(.closed) }
  }
}

/// A wait that somebody may give up.
package struct EventWait: Sendable {
  fileprivate let hub: NotificationHub
  fileprivate let listener: UInt64
  fileprivate let token: String

  /// Ends it, unless it has ended.
  package func cancel() { hub.end(listener, token) }
}
