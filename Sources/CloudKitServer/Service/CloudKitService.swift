import CloudKitWebServices
import Effects
import Foundation
import Synchronization

/// The service as a library: a request value in, a response value out.
///
/// It has no sockets; an adapter turns bytes into `WebServiceRequest` and back. The same code
/// serves production, tests and the in-process transport.
package final class CloudKitService: Sendable {
  let foundation: ServiceFoundation
  let notificationServices: NotificationServices
  let recordServices: RecordServices
  let databaseServices: DatabaseServices
  let credentialServices: CredentialServices
  let sessionServices: SessionServices
  let accountServices: AccountServices
  let bodyBounds: BodyBounds
  let decoding: BodyDecoding
  let readiness = Readiness()
  let backupRuns = BackupRuns()
  /// The bearer token of the admin API; it can be renewed while the server runs.
  let administratorToken: Mutex<String?>

  var isClosed: Bool { foundation.shutdownFlag.isSet }

  /// Opens the data, and throws if the asset store belongs to other data.
  package static func open(
    _ configuration: ServiceConfiguration
  ) async throws -> CloudKitService {
    let service = try CloudKitService(configuration, storage: try configuration.openStorage())
    do {
      try await service.assets.bindStore()
      // The copy that a process which was killed while it sent a backup has left.
      if configuration.dataFolder != nil {
        try? FileManager.default.removeItem(at: service.backupCopyFolder)
      }
      return service
    } catch {
      await service.shutdown()
      throw error
    }
  }

  /// Opens the storage of the configuration; `open` checks whether the asset store belongs to the
  /// data.
  package convenience init(_ configuration: ServiceConfiguration) throws {
    try self.init(configuration, storage: try configuration.openStorage())
  }

  /// Serves the data of a storage.
  package init(_ configuration: ServiceConfiguration, storage: any Storage) throws {
    let base = try ServiceFoundation(configuration, storage: storage)
    foundation = base
    notificationServices = try NotificationServices(base)
    recordServices = RecordServices(base, notificationServices)
    databaseServices = DatabaseServices(base, notificationServices, recordServices)
    credentialServices = CredentialServices(base)
    sessionServices = SessionServices(base, notificationServices, recordServices)
    accountServices = AccountServices(
      base,
      notificationServices,
      recordServices,
      databaseServices,
      credentialServices,
      sessionServices.sessions
    )
    bodyBounds = BodyBounds(base.limits)
    decoding = BodyDecoding(base.limits, base.reads, base.effects)
    administratorToken = Mutex(configuration.administratorToken)
    storage.listen { [weak self] event in self?.handle(event) }
  }

  /// Ends long polls with `null` and closes the storage; later requests get TRY_AGAIN_LATER.
  package func shutdown() async {
    foundation.shutdownFlag.set()
    devices.endListening()
    // Mails look up recipients in the storage.
    await mails.queue?.close()
    _ = try? await writer.directoryLane.run { [storage] in storage.close() }
  }

  /// Handles a commit notification of the storage; commits of this process were delivered already.
  private func handle(_ event: StorageEvent) {
    switch event {
    case .directory, .containers:
      // A commit of this process is followed by a call for its account, outside the writer's lane.
      guard !writer.isCurrent else { return }
      sessions.cache.forgetSessions()
      devices.checkListeners(in: delivery.lane)
    case .devices:
      guard !writer.isCurrent else { return }
      devices.checkListeners(in: delivery.lane)
    case .events:
      guard !writer.isCurrent else { return }
      // If the storage does not respond now, the next notification or the next maintenance delivers
      // the events.
      delivery.lane.async { [weak self] in try? self?.delivery.deliverEventsInLane() }
    }
  }

  /// Milliseconds since 1970.
  var now: Int64 { effects.now.wireMilliseconds }

  /// Loads, decides and commits; repeated if the loaded rows were changed in between.
  func write<Result: Sendable>(
    to partition: PartitionID? = nil,
    _ decide: @escaping @Sendable () throws -> (WriteBatch?, Result)
  ) async throws -> Result {
    try await writer.write(to: partition, decide)
  }
}

/// Whether the server is shutting down; the services that answer requests read it.
final class ShutdownFlag: Sendable {
  private let flag = Atomic<Bool>(false)

  var isSet: Bool { flag.load(ordering: .acquiring) }

  func set() { flag.store(true, ordering: .releasing) }
}
