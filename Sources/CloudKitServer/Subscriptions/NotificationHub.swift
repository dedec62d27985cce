import CloudKitWebServices
import Effects
import Foundation
import Synchronization

/// Delivers notifications to waiting polls and streams.
///
/// A commit wakes its devices directly, without polling. A listener costs a continuation and a few
/// words; one task ends all waits when they time out.
final class NotificationHub: Sendable {
  /// The result of a listener's wait.
  enum Delivery: Sendable {
    case entries([NotificationLog.Entry])
    /// Notifications were lost: fetch all changes, and listen from this number.
    case resync(Int64)
    /// There was none before the timeout.
    case nothing
    case closed
  }

  /// The owner of a device.
  struct Owner: Hashable, Sendable {
    var container: String
    var environment: ContainerEnvironment
    var user: String
  }

  /// The most notifications that are kept for a device that is not listening.
  static let logLimit = 256
  /// Seconds after which a device that does not listen is forgotten here; it is notified to fetch
  /// when it listens again.
  private static let idleTime = 3600.0

  struct Listener {
    /// Nil for a poll, which consumes one notification; otherwise the number up to which a stream
    /// has read.
    var position: Int64?
    /// Called once, on any thread and without a lock held.
    var serve: @Sendable (Delivery) -> Void
  }

  struct Device {
    var owner: Owner?
    var clientID: String?
    var log: NotificationLog
    /// The number up to which polls have read.
    var polled: Int64
    var listeners: [UInt64: Listener] = [:]
    /// Whether a stream was opened: notifications that a poll consumes are kept for it.
    var hasStreams = false
    /// Whether it has listened since the server started, and since notifications were lost.
    var hasListened = false
    var lastUse: Double
  }

  struct Deadline {
    var time: Double
    var listener: UInt64
    var token: String
  }

  struct State {
    var devices: [String: Device] = [:]
    var byOwner: [Owner: Set<String>] = [:]
    /// The number at which logs begin, above every number of devices that were removed in this run.
    ///
    /// A device that reconnects with a number of its former log must fetch, because that number is
    /// lower.
    var firstNumber: Int64 = 0
    /// When idle devices were last removed.
    var lastSweep = 0.0
    var nextListener: UInt64 = 0
    /// Waits that are about to be registered.
    var beginning: Set<UInt64> = []
    /// The waits in `beginning` that were cancelled before they were registered.
    var cancelled: Set<UInt64> = []
    /// The deadlines in the order of time, because all waits last equally long; those before
    /// `nextDeadline` have passed.
    var deadlines: [Deadline] = []
    var nextDeadline = 0
    var ticking: SpawnedTask?
    var isClosed = false
  }

  private let state = Mutex(State())
  private let effects: Effects
  /// The seconds that a wait lasts.
  private let timeout: Double
  private let deviceLimit: Int
  /// Waits of one device at a time.
  private let listenerLimit: Int
  /// The identifier of this run: numbers of another run are meaningless in this one.
  let run: String

  init(
    effects: Effects,
    timeout: Double,
    deviceLimit: Int = 100_000,
    listenerLimit: Int = ServiceLimits().listenersPerDevice
  ) {
    self.effects = effects
    self.timeout = timeout
    self.deviceLimit = deviceLimit
    self.listenerLimit = listenerLimit
    run = effects.randomness.bytes(6).hexadecimal
  }

  /// The broken invariants of the present state, a sentence each.
  func brokenInvariants() -> [String] { state.withLock { $0.brokenInvariants() } }

  // MARK: Devices

  /// Registers a device, so that its owner's notifications are kept for it.
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
      checkInvariants(state.brokenInvariants())
    }
  }

  /// Records that a device which has just received its token has missed nothing.
  func noteNothingMissed(by token: String) { noteListening(of: token) }

  /// Records that a device listens and was notified of what it may have missed.
  func noteListening(of token: String) {
    state.withLock { $0.devices[token]?.hasListened = true }
  }

  /// True if a device listens for the first time since the start, or since a loss: earlier
  /// notifications may be lost.
  func isFirstListening(of token: String) -> Bool {
    state.withLock { $0.devices[token]?.hasListened == false }
  }

  /// The devices of users, by the digests of their tokens.
  var ownedDevices: [String] {
    state.withLock { state in state.byOwner.values.flatMap { $0 } }
  }

  /// The devices of one user, by the digests of their tokens.
  func devices(of owner: Owner) -> [String] { state.withLock { Array($0.byOwner[owner] ?? []) } }

  /// Ends a device's listeners and removes its notifications.
  func end(_ token: String) {
    let listeners = state.withLock { state -> [Listener] in
      guard let device = remove(token, &state) else { return [] }
      if let owner = device.owner { forget(token, of: owner, &state) }
      checkInvariants(state.brokenInvariants())
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

  /// Removes the devices that have not listened for longest; they are notified to fetch when they
  /// listen again.
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

  /// The waits of streams and of polls.
  var listenerCounts: (streams: Int, polls: Int) {
    state.withLock { state in
      state.devices.values.reduce(into: (streams: 0, polls: 0)) { counts, device in
        for listener in device.listeners.values {
          if listener.position == nil { counts.polls += 1 } else { counts.streams += 1 }
        }
      }
    }
  }

  // MARK: Posting

  /// Whether a device of a user is registered here.
  func hasDevices(of owner: Owner) -> Bool { state.withLock { $0.byOwner[owner] != nil } }

  /// Posts a notification to a user's devices, except to the one that caused it.
  ///
  /// Only the newest of several notifications with one key is kept: it only means that there are
  /// changes to fetch.
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

  /// Posts a notification to one device.
  func post(_ notification: PushNotification, key: String?, to token: String) {
    let served = state.withLock { post(notification, key: key, token, &$0) }
    for (listener, delivery) in served { listener.serve(delivery) }
  }

  /// Makes a user's devices fetch all changes: notifications to them were left out.
  func postLoss(to owner: Owner) {
    let served = state.withLock { state in
      (state.byOwner[owner] ?? []).flatMap { lose(of: $0, &state) }
    }
    for (listener, delivery) in served { listener.serve(delivery) }
  }

  /// Lets the devices of all users fetch all changes, since notifications may have been lost.
  func postLossToAll() {
    let served = state.withLock { state in
      state.devices.keys.sorted().flatMap { lose(of: $0, &state) }
    }
    for (listener, delivery) in served { listener.serve(delivery) }
  }

  /// Lets a stream of the device receive a resync, and a poll end: with the next one the device is
  /// notified of what it may have missed, as after a start of the server.
  private func lose(of token: String, _ state: inout State) -> [(Listener, Delivery)] {
    state.devices[token]?.log.lose()
    state.devices[token]?.hasListened = false
    var served = serve(token, &state)
    let polls = state.devices[token]?.listeners.filter { $0.value.position == nil } ?? [:]
    for (id, poll) in polls {
      state.devices[token]?.listeners[id] = nil
      served.append((poll, .nothing))
    }
    return served
  }

  private func post(
    _ notification: PushNotification,
    key: String?,
    _ token: String,
    _ state: inout State
  ) -> [(Listener, Delivery)] {
    // Removed and inserted again: a device that is stored twice would have its log copied.
    guard !state.isClosed, var device = state.devices.removeValue(forKey: token) else { return [] }
    device.log.append(notification, key: key, limit: Self.logLimit)
    state.devices[token] = device
    return serve(token, &state)
  }

  /// Removes the listeners of a device that can receive something, with what they receive.
  private func serve(_ token: String, _ state: inout State) -> [(Listener, Delivery)] {
    guard !state.isClosed, var device = state.devices.removeValue(forKey: token) else { return [] }
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

  /// The notification that a listener can receive immediately.
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

  /// The next notification of a device, which no other poll receives.
  func poll(_ token: String) async -> Delivery { await wait(token, after: nil) }

  /// The next notification after a number, for a stream.
  func stream(_ token: String, after number: Int64) async -> Delivery {
    await wait(token, after: number)
  }

  /// Waits for notifications and passes them to `serve`, without a suspended task; the result can
  /// end the wait early.
  func stream(
    _ token: String,
    after number: Int64,
    _ serve: @escaping @Sendable (Delivery) -> Void
  ) -> EventWait {
    let id = beginWait(token)
    begin(Listener(position: number, serve: serve), id, token)
    return EventWait(hub: self, listener: id, token: token)
  }

  /// The number at which a new stream begins: everything that is kept for the device is new to it.
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
    let (ready, surplus) = register(listener, id, token)
    surplus?.serve(.closed)
    if let ready { listener.serve(ready) }
  }

  /// Begins a wait, unless its result is there already.
  ///
  /// If a device has too many waits, its oldest one ends: a client whose connection broke listens
  /// again before the server notices that.
  private func register(
    _ listener: Listener,
    _ id: UInt64,
    _ token: String
  ) -> (ready: Delivery?, surplus: Listener?) {
    state.withLock { state in
      state.beginning.remove(id)
      let isCancelled = state.cancelled.remove(id) != nil
      if state.isClosed { return (.closed, nil) }
      if isCancelled { return (.nothing, nil) }
      guard var device = state.devices[token] else { return (.closed, nil) }
      if let ready = delivery(listener.position, &device) {
        state.devices[token] = device
        return (ready, nil)
      }
      guard timeout > 0 else { return (.nothing, nil) }
      var surplus: Listener?
      if device.listeners.count >= listenerLimit, let oldest = device.listeners.keys.min() {
        surplus = state.devices[token]?.listeners.removeValue(forKey: oldest)
      }
      state.devices[token]?.listeners[id] = listener
      state.deadlines.append(
        Deadline(time: effects.clock.uptime + timeout, listener: id, token: token)
      )
      if state.ticking == nil {
        state.ticking = effects.tasks.spawn { [weak self] in await self?.tick() }
      }
      return (nil, surplus)
    }
  }

  /// Ends one wait with nothing, whether it has begun or is about to.
  fileprivate func end(_ id: UInt64, _ token: String) {
    let listener = state.withLock { state -> Listener? in
      if let listener = state.devices[token]?.listeners.removeValue(forKey: id) { return listener }
      // Missing: already served, or not registered yet; then it must not begin.
      if state.beginning.contains(id) { state.cancelled.insert(id) }
      return nil
    }
    listener?.serve(.nothing)
  }

  /// Ends waits that time out, as long as there are any.
  private func tick() async {
    while let seconds = endDueWaits() {
      // At most four times a second, however many waits there are.
      do { try await effects.clock.sleep(seconds: max(seconds, 0.25)) } catch { return }
    }
  }

  /// Returns the seconds to the next deadline; nil if there are no waits.
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

  /// Ends every wait; later ones end immediately.
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

/// A wait that can be cancelled.
package struct EventWait: Sendable {
  fileprivate let hub: NotificationHub
  fileprivate let listener: UInt64
  fileprivate let token: String

  /// Ends the wait, unless it has ended.
  package func cancel() { hub.end(listener, token) }
}
