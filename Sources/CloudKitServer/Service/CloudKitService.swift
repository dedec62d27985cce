import CloudKitWebServices
import Effects
import Foundation
import Logging
import Synchronization

/// The service as a library: a request value in, a response value out.
///
/// It has no sockets; an adapter turns bytes into `WebServiceRequest` and back. The same code
/// serves production, tests and the in-process transport.
package final class CloudKitService: Sendable {
  package let limits: ServiceLimits
  let bodyBounds: BodyBounds
  let configuration: ServiceConfiguration
  let effects: Effects
  package let storage: any Storage
  let assets: any AssetStore
  let signer: Signer
  let vault: FieldVault
  let notifications: NotificationHub
  /// The lanes in which the sizes of databases are counted.
  let counting: [Lane]
  let sessions = SessionCache()
  let signatures = SignatureLedger()
  let requests = RequestThrottle()
  let quotas = QuotaLedger()
  let uploads = UploadLedger()
  let exports = RunningExports()
  let matchers = SubscriptionMatchers()
  let sequenceDevices = SequenceDevices()
  /// Reads that may examine many records run on threads of their own.
  let reads: ReadQueue
  /// The lane of writes, so that threads of the pool do not block on the disk.
  var writing: Lane { writers[0] }
  /// As many lanes as the storage can use at a time; a partition's writes are queued in one of
  /// them.
  private let writers: [Lane]
  /// The event up to which this process's listeners were notified.
  let deliveredPosition: Mutex<EventPosition>
  /// The incarnation of the storage to which this position belongs.
  let deliveredIncarnation: Mutex<String>
  /// Delivers events to listeners, one at a time.
  let deliveryLane: Lane
  let announcements = AnnouncementLedger()
  /// Notifications of this process's commits whose delivery failed.
  let undelivered = Mutex<[CommitNotification]>([])
  /// Passwords are hashed one at a time, from a bounded queue.
  let hashing: HashingQueue
  /// Queued mails; nil if the server sends none.
  let mail: MailQueue?
  /// The bearer token of the admin API; it can be renewed while the server runs.
  let administratorToken: Mutex<String?>
  let auditedFailures = Mutex(AuditedFailures())
  private let address: Mutex<String>
  private let closed = Atomic<Bool>(false)

  var logger: Logger { configuration.logger }

  var isClosed: Bool { closed.load(ordering: .acquiring) }

  /// The URL at which clients reach the server, without a trailing slash.
  package var baseURL: String {
    get { address.withLock { $0 } }
    set {
      address.withLock { $0 = newValue.hasSuffix("/") ? String(newValue.dropLast()) : newValue }
    }
  }

  /// The host of that URL, for users.
  var host: String { URLComponents(string: baseURL)?.host ?? "localhost" }

  /// Opens the data, and throws if the asset store belongs to other data.
  package static func open(
    _ configuration: ServiceConfiguration
  ) async throws -> CloudKitService {
    let service = try CloudKitService(configuration)
    do {
      try await service.bindAssetStore()
      return service
    } catch {
      await service.shutdown()
      throw error
    }
  }

  /// Opens the data folder, or starts empty in memory; `open` checks whether the asset store
  /// belongs to the data.
  package init(_ configuration: ServiceConfiguration) throws {
    self.configuration = configuration
    limits = configuration.limits
    bodyBounds = BodyBounds(limits)
    effects = configuration.effects
    let opened: any Storage =
      if let database = configuration.database {
        try PostgreSQLStorage(url: database, effects: configuration.effects)
      } else {
        try SQLiteStorage(folder: configuration.dataFolder, effects: configuration.effects)
      }
    storage = configuration.storage?(opened) ?? opened
    if let store = configuration.assetStore {
      assets = store
    } else if let folder = configuration.dataFolder {
      assets = try FolderAssetStore(folder: folder.appendingPathComponent(Self.assetFolderName))
    } else {
      assets = MemoryAssetStore { [effects = configuration.effects] in effects.now }
    }
    vault = try FieldVault(
      file: configuration.fieldKeyFile,
      storage: storage,
      randomness: configuration.effects.randomness,
      now: configuration.effects.now.wireMilliseconds
    )
    signer = Signer(
      keys: vault.signingKeys,
      former: storage.secret,
      clock: configuration.effects.clock,
      reread: { [vault] in try? vault.reread() }
    )
    notifications = NotificationHub(
      effects: configuration.effects,
      timeout: configuration.limits.longPollTimeout
    )
    deliveredIncarnation = Mutex(storage.incarnation)
    deliveredPosition = Mutex(try storage.newestEvent())
    deliveryLane = configuration.effects.lane("server notifications")
    writers = (0..<storage.writerCount).map {
      configuration.effects.waitingLane("server storage \($0)")
    }
    counting = (0..<4).map { configuration.effects.waitingLane("server quotas \($0)") }
    reads = ReadQueue(
      threads: configuration.limits.readThreads,
      waiting: configuration.limits.waitingReads,
      waitingPerReader: configuration.limits.waitingReadsPerReader,
      effects: configuration.effects
    )
    hashing = HashingQueue(configuration.effects.lane("server passwords"))
    mail = Self.makeMailQueue(configuration)
    administratorToken = Mutex(configuration.administratorToken)
    address = Mutex("")
    baseURL = configuration.baseURL
    storage.listen { [weak self] event in self?.handle(event) }
  }

  /// Ends long polls with `null` and closes the storage; later requests get TRY_AGAIN_LATER.
  package func shutdown() async {
    closed.store(true, ordering: .releasing)
    notifications.close()
    // Mails look up recipients in the storage.
    await mail?.close()
    _ = try? await writing.run { [storage] in storage.close() }
  }

  /// Handles a commit notification of the storage; commits of this process were delivered already.
  private func handle(_ event: StorageEvent) {
    switch event {
    case .directory:
      sessions.forgetSessions()
      // A commit of this process is followed by the same call, outside the writer's lane.
      guard !writers.contains(where: \.isCurrent) else { return }
      deliveryLane.async { [weak self] in self?.endUnboundListeners() }
    case .events:
      guard !writers.contains(where: \.isCurrent) else { return }
      // If the storage does not respond now, the next notification or the next maintenance delivers
      // the events.
      deliveryLane.async { [weak self] in try? self?.deliverEventsInLane() }
    }
  }

  /// Milliseconds since 1970.
  var now: Int64 { effects.now.wireMilliseconds }

  /// Loads, decides and commits; repeated if the loaded rows were changed in between.
  ///
  /// Writes to the same partition are serialized within this process.
  func write<Result: Sendable>(
    to partition: PartitionID? = nil,
    _ decide: @escaping @Sendable () throws -> (WriteBatch?, Result)
  ) async throws -> Result {
    try await writers[Self.lane(of: partition, count: writers.count)].run { [storage] in
      for _ in 0..<16 {
        let (batch, result) = try decide()
        guard let batch else { return result }
        do {
          try storage.commit(batch)
          return result
        } catch is ExpectationFailed {
          continue
        }
      }
      throw ErrorDictionary(.tryAgainLater, "the database is busy", retryAfter: 1)
    }
  }

  /// The writers' lane of a partition; the first one is the directory's alone, if there are others.
  static func lane(of partition: PartitionID?, count: Int) -> Int {
    guard let partition, count > 1 else { return 0 }
    // All numbers of partitions are odd.
    return 1 + Int((partition.rawValue.magnitude >> 1) % UInt64(count - 1))
  }

  func partition(_ context: RequestContext) throws -> PartitionID {
    if let visit = context.visit { return PartitionID(rawValue: visit.partition) }
    let key = PartitionKey(
      container: context.container,
      environment: context.environment,
      scope: context.scope,
      owner: try context.owner()
    )
    // An API token may be for all containers: for a name that its bearer made up, no rows are
    // created.
    guard context.principal != nil || context.signature != nil else {
      return try storage.knownPartition(key) ?? .empty
    }
    return try storage.partition(key)
  }
}
