import CloudKitWebServices
import Effects
import Foundation
import Logging
import Synchronization

/// The service as a library: a request value in, a response value out.
///
/// It has no sockets; whoever has them turns bytes into `WebServiceRequest` and back. The same code
/// serves production, tests and the in-process transport.
package final class CloudKitService: Sendable {
  package let limits: ServiceLimits
  let configuration: ServiceConfiguration
  let effects: Effects
  package let storage: any Storage
  let assets: any AssetStore
  let signer: Signer
  let vault: FieldVault
  let notifications: NotificationHub
  let sessions = SessionCache()
  let signatures = SignatureLedger()
  let requests = RequestThrottle()
  let quotas = QuotaLedger()
  let uploads = UploadLedger()
  let exports = RunningExports()
  let matchers = SubscriptionMatchers()
  let sequenceDevices = SequenceDevices()
  /// Reads that may look at much wait for threads of their own.
  let reads: ReadQueue
  /// Writes queue here instead of blocking threads of the pool on the disk.
  var writing: Lane { writers[0] }
  /// As many as the storage can use at a time; a partition's writes queue in one of them.
  private let writers: [Lane]
  /// The event up to which this process's listeners have been given everything.
  let newsPosition: Mutex<EventPosition>
  /// The incarnation of the storage that this position belongs to.
  let newsIncarnation: Mutex<String>
  /// Delivers events to listeners, one after the other.
  let telling: Lane
  let announcements = AnnouncementLedger()
  /// Notes of this process's commits whose delivery failed.
  let undelivered = Mutex<[CommitNote]>([])
  /// Passwords are hashed one at a time, behind a bounded queue.
  let hashing: HashingQueue
  /// Mails that wait to be sent; nil where the server sends none.
  let mail: MailQueue?
  /// Opens the admin API; it can be renewed while the server runs.
  let administratorToken: Mutex<String?>
  let auditedFailures = Mutex(AuditedFailures())
  private let address: Mutex<String>
  private let closed = Atomic<Bool>(false)

  var logger: Logger { configuration.logger }

  var isClosed: Bool { closed.load(ordering: .acquiring) }

  /// Where clients reach the server, without a slash at the end.
  package var baseURL: String {
    get { address.withLock { $0 } }
    set {
      address.withLock { $0 = newValue.hasSuffix("/") ? String(newValue.dropLast()) : newValue }
    }
  }

  /// The host of that address, as people know it.
  var host: String { URLComponents(string: baseURL)?.host ?? "localhost" }

  /// Opens the data, and refuses to where the asset store is not the data's.
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

  /// Opens the data folder, or starts empty in memory; whether the asset store is the data's is
  /// checked by `open`.
  package init(_ configuration: ServiceConfiguration) throws {
    self.configuration = configuration
    limits = configuration.limits
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
    newsIncarnation = Mutex(storage.incarnation)
    newsPosition = Mutex(try storage.newestEvent())
    telling = configuration.effects.lane("server news")
    writers = (0..<storage.writerCount).map {
      configuration.effects.waitingLane("server storage \($0)")
    }
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
    storage.listen { [weak self] news in self?.hear(news) }
  }

  /// Ends long polls with `null` and closes the storage; later requests get TRY_AGAIN_LATER.
  package func shutdown() async {
    closed.store(true, ordering: .releasing)
    notifications.close()
    // What is looked up for mails needs the storage.
    await mail?.close()
    _ = try? await writing.run { [storage] in storage.close() }
  }

  /// Word of commits; of its own this process has told its listeners by itself.
  private func hear(_ news: StorageNews) {
    switch news {
    case .directory:
      sessions.forgetSessions()
      // A commit of this process is followed by the same call, outside the writer's lane.
      guard !writers.contains(where: \.isCurrent) else { return }
      telling.async { [weak self] in self?.endUnboundListeners() }
    case .events:
      guard !writers.contains(where: \.isCurrent) else { return }
      // Storage that does not answer now may do so with the next news, or the next maintenance.
      telling.async { [weak self] in try? self?.deliverNewsInLane() }
    }
  }

  /// Milliseconds since 1970.
  var now: Int64 { effects.now.wireMilliseconds }

  /// Loads, decides and commits; again when what it was decided on has changed meanwhile.
  ///
  /// Writes that name the same partition never meet within this process.
  func write<Result: Sendable>(
    to partition: PartitionID? = nil,
    _ decide: @escaping @Sendable () throws -> (WriteBatch?, Result)
  ) async throws -> Result {
    let lane = partition.map { Int($0.rawValue.magnitude % UInt64(writers.count)) } ?? 0
    return try await writers[lane].run { [storage] in
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

  func partition(_ context: RequestContext) throws -> PartitionID {
    if let visit = context.visit { return PartitionID(rawValue: visit.partition) }
    let key = PartitionKey(
      container: context.container,
      environment: context.environment,
      scope: context.scope,
      owner: try context.owner()
    )
    // An API token may be for all containers: a name that its bearer made up gets no rows.
    guard context.principal != nil || context.signature != nil else {
      return try storage.knownPartition(key) ?? .empty
    }
    return try storage.partition(key)
  }
}
