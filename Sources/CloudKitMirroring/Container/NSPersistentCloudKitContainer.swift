import Effects
import Foundation
import OpenCloudKit
import OpenCoreData
import Synchronization

/// A container that keeps its stores equal to the user's CloudKit database.
///
/// Stores whose descriptions have `cloudKitContainerOptions` are mirrored automatically once they
/// are loaded; others are not. The description that the container creates itself gets options for
/// the first CloudKit container of the configuration, as Core Data reads them from an app's
/// entitlements; set them to nil to keep that store local.
///
/// ```swift
/// let container = NSPersistentCloudKitContainer(name: "Model")
/// let local = NSPersistentStoreDescription(url: localURL)
/// local.configuration = "Local"
/// container.persistentStoreDescriptions.append(local)
/// container.loadPersistentStores { _, error in if let error { report(error) } }
/// ```
///
/// Objects and edits that another device's deletion, a restored server or a repeated batch overrode are kept in a
/// list; see ``recoveryEntries(in:limit:)``.
///
/// **Differs from Core Data:** CloudKit stores a decimal as a double: other devices receive about
/// 16 of its digits, and the device that saved it keeps all. An attribute whose user info has `YES`
/// under `WatershedExactDecimal` is exact on all devices: a value with more digits is also stored
/// in the text field `CD_<name>_wsExact`, which must exist in the production schema. A NaN is sent
/// as no value.
///
/// **Differs from Core Data:** A change of a date within one millisecond is not sent, because clients of
/// the web services return dates with whole milliseconds.
///
/// **Differs from Core Data:** A number whose type a migration changed is sent in the type of
/// CloudKit's field, if that can represent it. If not (0.5 in an integer), the record is not
/// exported and the export's event has the reason; a new attribute has a field of its own.
///
/// **Differs from Core Data:** A record stores nil as no field. A device that imports an object for
/// the first time reads an optional attribute with a default as the default, because the record may
/// be of a version of the app without the attribute; a device that had a value of it reads nil.
///
/// **Differs from Core Data:** The record name of an object follows from its insertion, so that a
/// store that is restored from a backup gives an object that was not sent before the backup the
/// name under which it was sent after it. The names of Core Data are random.
open class NSPersistentCloudKitContainer: NSPersistentContainer, @unchecked Sendable {
  // Sendable: `mirrors` guards what the class adds.

  struct Mirrored: @unchecked Sendable {
    // Sendable: the options are the app's, and are only read here, when the store moves.
    let store: NSPersistentStore
    let mirror: StoreMirror
    let options: NSPersistentCloudKitContainerOptions
    /// Has the mirror check its account again whenever that may have changed.
    let account: AccountObserver
  }

  /// The stores that are mirrored, in the order in which they were loaded.
  let mirrors = Mutex<[Mirrored]>([])
  /// Ends and continues the mirroring of stores that the coordinator removes and moves.
  private let storesObserver = Mutex<StoresObserver?>(nil)
  /// The description that the container made, kept so that none of the app's is taken for it.
  private var ownDescription: NSPersistentStoreDescription?

  /// Creates a container with a model; the store that it describes itself is mirrored with the
  /// first CloudKit container of the configuration, if there is one.
  public override init(name: String, managedObjectModel model: NSManagedObjectModel) {
    super.init(name: name, managedObjectModel: model)
    ownDescription = persistentStoreDescriptions.first
  }

  deinit {
    for mirror in storeMirrors {
      MirroredStores.shared.remove(mirror)
      mirror.stop()
    }
  }

  // MARK: Loading

  /// Opens or creates the stores, and starts to mirror those that have options for it.
  ///
  /// A model that CloudKit does not support is refused with all reasons, before the store is
  /// changed.
  open override func loadPersistentStores(
    completionHandler block: @escaping (NSPersistentStoreDescription, (any Error)?) -> Void
  ) {
    observeStores()
    mirrorOwnDescription(with: CKContainer.default().containerIdentifier)
    let all = persistentStoreDescriptions
    var accepted: [NSPersistentStoreDescription] = []
    var seen: Set<String> = []
    for description in all {
      guard let options = description.cloudKitContainerOptions else {
        accepted.append(description)
        continue
      }
      do {
        try check(description, options, &seen)
        accepted.append(description)
      } catch {
        block(description, error)
      }
    }
    persistentStoreDescriptions = accepted
    super.loadPersistentStores { [weak self] description, error in
      guard let self, error == nil, let options = description.cloudKitContainerOptions else {
        return block(description, error)
      }
      block(description, self.attach(description, options))
    }
    persistentStoreDescriptions = all
  }

  /// Observes the coordinator from the first loading on: the container's effects can be changed until
  /// the coordinator is used.
  private func observeStores() {
    storesObserver.withLock { observer in
      guard observer == nil else { return }
      observer = StoresObserver(of: persistentStoreCoordinator) { [weak self] removed, moved in
        self?.storesDidChange(removed: removed, moved: moved)
      }
    }
  }

  /// Sets the options to mirror the container's own description with a CloudKit container, unless
  /// the app has configured the mirroring of its stores.
  package func mirrorOwnDescription(with identifier: @autoclosure () -> String?) {
    guard let own = persistentStoreDescriptions.first(where: { $0 === ownDescription }),
      own.mirroring == nil, own.type == NSSQLiteStoreType,
      !persistentStoreDescriptions.contains(where: { $0.cloudKitContainerOptions != nil }),
      let identifier = identifier()
    else { return }
    own.cloudKitContainerOptions = NSPersistentCloudKitContainerOptions(
      containerIdentifier: identifier
    )
  }

  private func check(
    _ description: NSPersistentStoreDescription,
    _ options: NSPersistentCloudKitContainerOptions,
    _ seen: inout Set<String>
  ) throws {
    func refuse(_ reason: String) -> NSError { MirroringErrorCode.modelRefused.error(reason) }
    guard !options.containerIdentifier.isEmpty else {
      throw refuse("CloudKit integration requires a container identifier.")
    }
    guard description.type == NSSQLiteStoreType else {
      throw refuse("CloudKit integration is only supported for SQLite stores.")
    }
    guard options.databaseScope == .private else {
      throw refuse(
        "CloudKit integration mirrors the private database; the public and the shared one are not "
          + "mirrored yet."
      )
    }
    let place = "\(options.containerIdentifier) \(options.databaseScope.rawValue)"
    guard seen.insert(place).inserted else {
      throw refuse(
        "CloudKit integration requires that a container and a database are used with one store; "
          + "\(options.containerIdentifier) is used twice."
      )
    }
    if let tracking = description.options[NSPersistentHistoryTrackingKey] as? NSNumber,
      !tracking.boolValue
    {
      throw refuse("CloudKit integration requires persistent history tracking.")
    }
    let violations = CloudKitModelRules.violations(
      of: managedObjectModel,
      configuration: description.configuration
    )
    guard violations.isEmpty else {
      throw CloudKitModelRules.error(violations, storeURL: description.url)
    }
    description.setOption(NSNumber(value: true), forKey: NSPersistentHistoryTrackingKey)
    description.setOption(
      NSNumber(value: true),
      forKey: NSPersistentStoreRemoteChangeNotificationPostOptionKey
    )
  }

  /// Starts to mirror a store that was just opened; if that fails, the store is removed again.
  private func attach(
    _ description: NSPersistentStoreDescription,
    _ options: NSPersistentCloudKitContainerOptions
  ) -> (any Error)? {
    let coordinator = persistentStoreCoordinator
    guard let store = store(of: description) else {
      return MirroringErrorCode.cancelled.error("The store was removed while it was loaded.")
    }
    do {
      try attach(store, options)
      return nil
    } catch {
      try? coordinator.remove(store)
      return error
    }
  }

  /// Starts to mirror a store of the coordinator.
  func attach(_ store: SQLiteStore, _ options: NSPersistentCloudKitContainerOptions) throws {
    let effects = persistentStoreCoordinator.effects
    let identifier = store.identifier ?? ""
    try MirroredStores.shared.claim(identifier)
    let container =
      options.container ?? CKContainer(identifier: options.containerIdentifier)
    let cloud = CloudKitDatabase(container: container, scope: options.databaseScope)
    let mirror: StoreMirror
    // An observer may make the posting thread wait for the main queue: never the mirror's.
    let notices = effects.waitingLane("NSPersistentCloudKitContainer.Event")
    do {
      mirror = try StoreMirror(
        store: store,
        cloud: cloud,
        options: StoreMirror.Options(
          containerIdentifier: options.containerIdentifier,
          limits: ExportBatcher.Limits(operations: options.limits.operationsPerBatch),
          budget: AssetBudget(limit: options.limits.inlineBytes),
          pageLimit: options.limits.recordsPerPage
        ),
        effects: effects,
        onEvent: { [weak self] event, error in
          notices.async { [weak self] in self?.post(event, error, of: identifier) }
        }
      )
    } catch {
      MirroredStores.shared.release(identifier)
      throw error
    }
    let account = AccountObserver(of: container) { [weak mirror] in
      mirror?.accountMayHaveChanged()
    }
    mirrors.withLock {
      $0.append(Mirrored(store: store, mirror: mirror, options: options, account: account))
    }
    MirroredStores.shared.add(mirror, of: store)
    mirror.start()
  }

  private func store(of description: NSPersistentStoreDescription) -> SQLiteStore? {
    let stores = persistentStoreCoordinator.persistentStores.compactMap { $0 as? SQLiteStore }
    // In-memory stores may share one URL: the last added one is returned.
    return stores.last { store in
      store.url == description.url
        && (description.configuration == nil
          || store.configurationName == description.configuration)
    }
  }

  // MARK: For other modules

  /// The mirrors of the stores, in the order in which they were loaded.
  package var storeMirrors: [StoreMirror] { mirrors.withLock { $0.map(\.mirror) } }

  /// The mirror of a store.
  package func mirror(of store: NSPersistentStore?) -> StoreMirror? {
    mirrors.withLock { $0.first { $0.store === store }?.mirror }
  }

  /// The CloudKit container of each mirrored store's options; nil where the options have an identifier alone.
  package var mirroredConnections: [CKContainer?] {
    mirrors.withLock { $0.map(\.options.container) }
  }

  /// The mirroring status of each store.
  package func mirroringStatus() throws -> [MirroringStatus] {
    try storeMirrors.map { try $0.status() }
  }

  /// Imports and exports once, immediately, in every mirrored store.
  package func syncNow() async throws {
    for mirror in storeMirrors { try await mirror.syncNow() }
  }

  /// Syncs until no change is left to export.
  package func waitUntilSynced() async throws {
    for mirror in storeMirrors { try await mirror.waitUntilSynced() }
  }

  /// Forgets the mirrors as if their process had crashed: nothing is stopped, closed or written.
  ///
  /// Another container of this process can then mirror a copy of their stores.
  package func abandonMirrors() {
    for mirror in storeMirrors { MirroredStores.shared.remove(mirror) }
  }

  /// Ends all mirroring and closes the stores, as at the end of the process.
  package func closeStores() async throws {
    for mirror in storeMirrors {
      await mirror.stopAndFinish()
      MirroredStores.shared.remove(mirror)
    }
    mirrors.withLock { $0 = [] }
    for store in persistentStoreCoordinator.persistentStores {
      try persistentStoreCoordinator.remove(store)
    }
  }
}
