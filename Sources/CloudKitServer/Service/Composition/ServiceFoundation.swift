import Effects
import Foundation
import Logging

/// The objects that all services of a process share: the storage and its writer, the keys, the files,
/// and the counters that limit requests.
struct ServiceFoundation: Sendable {
  let configuration: ServiceConfiguration
  let limits: ServiceLimits
  let effects: Effects
  let storage: any Storage
  /// All writes of this process.
  let writer: StorageWriter
  let databases: DatabaseLookup
  let rates: RequestRates
  let auditLog: AuditLog
  let reads: BoundedReads
  let address: ServerAddress
  let assetStore: any AssetStore
  let vault: FieldVault
  let signer: Signer
  let quotas: DatabaseQuotas
  let failures: RequestFailures
  let refusals = RefusalCounts()
  let requestLog: RequestLog
  let shutdownFlag = ShutdownFlag()

  var logger: Logger { configuration.logger }

  init(_ configuration: ServiceConfiguration, storage: any Storage) throws {
    self.configuration = configuration
    self.storage = storage
    limits = configuration.limits
    effects = configuration.effects
    writer = StorageWriter(storage, effects)
    databases = DatabaseLookup(storage, limits)
    rates = RequestRates(limits, effects)
    auditLog = AuditLog(
      storage: storage,
      writer: writer,
      limits: limits,
      effects: effects,
      logger: configuration.logger
    )
    reads = BoundedReads(limits, effects)
    address = ServerAddress(configuration.baseURL)
    assetStore = try Self.assetStore(configuration)
    let vault = try FieldVault(
      file: configuration.fieldKeyFile,
      storage: storage,
      randomness: effects.randomness,
      now: effects.now.wireMilliseconds
    )
    self.vault = vault
    signer = Signer(
      keys: vault.signingKeys,
      former: storage.secret,
      clock: effects.clock,
      reread: { try? vault.reread() }
    )
    quotas = DatabaseQuotas(storage, assetStore, limits, effects)
    failures = RequestFailures(logger: configuration.logger)
    requestLog = RequestLog(
      limit: limits.loggedRequests,
      byteLimit: limits.loggedRequestBytes,
      name: effects.uuid().uuidString.lowercased()
    )
  }

  /// The configured asset store; otherwise a folder of the data, or the memory where nothing is
  /// kept.
  private static func assetStore(
    _ configuration: ServiceConfiguration
  ) throws -> any AssetStore {
    if let store = configuration.assetStore { return store }
    guard let folder = configuration.dataFolder else {
      let effects = configuration.effects
      return MemoryAssetStore { effects.now }
    }
    return try FolderAssetStore(
      folder: folder.appendingPathComponent(CloudKitService.assetFolderName)
    )
  }
}
