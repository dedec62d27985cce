import Effects
import Foundation

/// Makes the store that a migration to another place or type puts in place of a coordinator's store.
///
/// The store's write lock is held meanwhile.
struct StoreMove {
  let coordinator: NSPersistentStoreCoordinator
  let store: NSPersistentStore
  let rows: any RowStore
  let options: [AnyHashable: Any]?
  let type: String

  /// A new store, and the binding that it will have in the coordinator.
  typealias Made = (NSPersistentStore, StoreBinding)

  private var configuration: String? {
    store.configurationName == NSManagedObjectModel.defaultConfigurationName
      ? nil : store.configurationName
  }

  private var copier: StoreCopier {
    StoreCopier(
      source: rows,
      model: coordinator.managedObjectModel,
      configuration: configuration
    )
  }

  // MARK: To a file

  /// Writes the new store beside the destination, whose former file stays until the copy replaces it.
  func run(toFile url: URL) throws -> Made {
    let draft = StoreDraft(beside: url, effects: coordinator.effects)
    defer { draft.remove() }
    let place = url.resolvingSymlinksInPath()
    guard StoreClasses.shared.customClass(of: type) == nil else {
      return try atomicStore(draft, at: url, place)
    }
    try SQLiteStore.requireFolder(of: url)
    let source = store as? SQLiteStore
    try source?.copy(to: draft.url)
    let made = try coordinator.sqliteStore(type, configuration, draft.url, draftOptions)
    do {
      if source == nil { try copier.copy(to: made) }
      try made.write(metadata: metadata(of: made))
    } catch {
      made.close()
      throw error
    }
    made.close()
    try draft.requireWhole()
    let isNew = try !FileSystem.isThere(place.path)
    let files = try ExternalFiles(store: url, copy: draft.url, effects: coordinator.effects)
    try install(draft, files, place)
    do {
      return bound(try coordinator.sqliteStore(type, configuration, url, options))
    } catch {
      if isNew {
        StorePlace.discardFile(at: place)
        files.takeBack()
      }
      throw error
    }
  }

  private func install(_ draft: StoreDraft, _ files: ExternalFiles, _ place: URL) throws {
    var mayBeReplaced = false
    do {
      try files.bring(for: draft.url)
      try draft.requireWhole()
      let installation = StoreInstallation(
        draft: draft.url,
        place: place,
        isForced: NSPersistentStore.flag(NSPersistentStoreForceDestroyOption, in: options),
        timeout: SQLiteStore.timeout(options)
      )
      try SQLiteStore.translatingFile(place) { try installation.run { mayBeReplaced = true } }
    } catch {
      if !mayBeReplaced { files.takeBack() }
      throw error
    }
    files.forget()
  }

  private var draftOptions: [AnyHashable: Any] {
    var options = options ?? [:]
    options[NSPersistentStoreRemoteChangeNotificationPostOptionKey] = nil
    return options
  }

  private func atomicStore(_ draft: StoreDraft, at url: URL, _ place: URL) throws -> Made {
    let (made, binding) = try filledAtomicStore(at: draft.url)
    // A store class of the app may store its objects elsewhere.
    guard try FileSystem.isThere(draft.url.path) else { return try filledAtomicStore(at: url) }
    let folder = ExternalFolder(store: url)
    let share = try folder.share()
    try FileSystem.move(draft.url.path, over: place.path)
    made.url = url
    // Files that an SQLite store had next to the removed file.
    try StorePlace.removeLog(of: place)
    try folder.remove(share)
    return (made, binding)
  }

  // MARK: To no file

  /// Makes the new store where there is no file that it could replace.
  func run(to url: URL) throws -> Made {
    guard StoreClasses.shared.customClass(of: type) == nil else {
      return try filledAtomicStore(at: url)
    }
    let made = try coordinator.sqliteStore(type, configuration, url, options)
    try copier.copy(to: made)
    made.metadata = metadata(of: made)
    return bound(made)
  }

  private func filledAtomicStore(at url: URL) throws -> Made {
    guard let custom = StoreClasses.shared.customClass(of: type) else {
      throw NSPersistentStoreCoordinator.invalidType(type)
    }
    let (made, binding) = try coordinator.load(custom, type, configuration, url, options)
    guard let atomic = made as? NSAtomicStore, let nodes = binding.rows as? AtomicRows else {
      throw CoreDataError.make(
        NSPersistentStoreUnsupportedRequestTypeError,
        "A store cannot be migrated to the type \(type)."
      )
    }
    atomic.identifier = store.identifier
    atomic.metadata = metadata(of: atomic)
    try copier.copy(to: atomic, nodes)
    binding.takeIdentifier()
    return (atomic, binding)
  }

  private func bound(_ made: SQLiteStore) -> Made {
    made.identifier = store.identifier
    let binding = StoreBinding(store: made, rows: made, model: coordinator.managedObjectModel)
    binding.takeIdentifier()
    return (made, binding)
  }

  /// The new store has the old one's identifier and the app's metadata of the old one.
  private func metadata(of made: NSPersistentStore) -> [String: Any] {
    var metadata: [String: Any] = made.metadata ?? [:]
    for (key, value) in store.metadata ?? [:] where metadata[key] == nil { metadata[key] = value }
    metadata[NSStoreUUIDKey] = store.identifier
    return metadata
  }
}
