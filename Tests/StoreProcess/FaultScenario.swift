import Effects
import Foundation
import OpenCoreData

/// An operation on stores that is run with faults, from opening the stores to closing them.
enum FaultScenario: String, CaseIterable {
  case create, open, save, cascade, batchInsert, batchUpdate, batchDelete
  case lightweight, withoutFiles, staged, heavy, trim
  case replace, restore, move, moveOver, moveToBinary, destroy, saveBinary

  /// Whether the process that wrote the stores crashed, so that the last saves are only in the
  /// logs.
  private var leavesLogs: Bool {
    switch self {
    case .open, .save, .lightweight, .withoutFiles, .replace, .destroy, .moveOver: true
    default: false
    }
  }

  /// The stores to which another process saves in between, and whether its saves must be in them
  /// afterwards: saves to a store that is replaced or destroyed are lost with it.
  var neighbours: [(file: String, mustStay: Bool)] {
    switch self {
    case .open, .save, .cascade, .batchInsert, .batchUpdate, .batchDelete, .lightweight,
      .withoutFiles, .staged, .trim, .move:
      [("a.sqlite", true)]
    case .replace: [("b.sqlite", true), ("a.sqlite", false)]
    case .moveOver: [("a.sqlite", true), ("b.sqlite", false)]
    case .destroy: [("a.sqlite", false)]
    case .create, .heavy, .restore, .moveToBinary, .saveBinary: []
    }
  }

  /// Whether the operation can be repeated without changing the result.
  var isRepeatable: Bool {
    switch self {
    case .save, .saveBinary, .cascade, .batchInsert, .batchUpdate, .batchDelete: false
    default: true
    }
  }

  // MARK: Preparation

  func prepare(_ folder: URL) throws {
    let making = leavesLogs ? folder.appendingPathComponent("making") : folder
    try FileManager.default.createDirectory(at: making, withIntermediateDirectories: true)
    func fill(_ name: String, _ first: UInt8, type: String = NSSQLiteStoreType) throws {
      try FaultModel.fill(making.appendingPathComponent(name), type: type, first: first)
    }
    switch self {
    case .create: return
    case .saveBinary: try fill("a.binary", 1, type: NSBinaryStoreType)
    case .restore: try fill("b.sqlite", 101)
    case .replace, .moveOver:
      try fill("a.sqlite", 1)
      try fill("b.sqlite", 101)
    case .moveToBinary:
      try fill("a.sqlite", 1)
      try fill("b.binary", 101, type: NSBinaryStoreType)
    default: try fill("a.sqlite", 1)
    }
    if leavesLogs { try leaveLogs(from: making, to: folder) }
  }

  /// Copies the files of open stores with saved changes.
  private func leaveLogs(from making: URL, to folder: URL) throws {
    let manager = FileManager.default
    for name in try FileSystem.names(in: making.path) where name.hasSuffix(".sqlite") {
      let url = making.appendingPathComponent(name)
      try FaultModel.withStore(url) { context in
        FaultModel.insertCard("late", picture: 77, context)
        try context.save()
        for suffix in ["", "-wal"] {
          try manager.copyItem(
            atPath: url.path + suffix,
            toPath: folder.appendingPathComponent(name).path + suffix
          )
        }
      }
    }
    for name in try FileSystem.names(in: making.path) where name.hasSuffix("_SUPPORT") {
      try manager.copyItem(
        at: making.appendingPathComponent(name),
        to: folder.appendingPathComponent(name)
      )
    }
    try manager.removeItem(at: making)
  }

  // MARK: The operation

  func run(_ folder: URL) throws {
    let (a, b) = (
      folder.appendingPathComponent("a.sqlite"), folder.appendingPathComponent("b.sqlite")
    )
    switch self {
    case .create: try FaultModel.withStore(a) { _ in }
    case .open:
      try FaultModel.withStore(a) { _ = try $0.count(for: NSFetchRequest(entityName: "Card")) }
    case .save: try FaultModel.withStore(a) { try Self.change($0) }
    case .saveBinary:
      let url = folder.appendingPathComponent("a.binary")
      try FaultModel.withStore(url, type: NSBinaryStoreType) { try Self.change($0) }
    case .cascade:
      try FaultModel.withStore(a) { context in
        context.delete(try Self.object("Box", "box0", context))
        try context.save()
      }
    case .batchInsert:
      try FaultModel.withStore(a) { context in
        let picture = Data(repeating: 99, count: FaultModel.pictureSize)
        let objects = (0..<20).map { ["name": "new\($0)", "picture": picture] as [String: Any] }
        try context.execute(NSBatchInsertRequest(entityName: "Card", objects: objects))
      }
    case .batchUpdate:
      try FaultModel.withStore(a) { context in
        let request = NSBatchUpdateRequest(entityName: "Card")
        request.predicate = NSPredicate(format: "name BEGINSWITH 'card'")
        request.propertiesToUpdate = ["number": 7]
        try context.execute(request)
      }
    case .batchDelete:
      try FaultModel.withStore(a) { context in
        let fetch = NSFetchRequest<any NSFetchRequestResult>(entityName: "Card")
        fetch.predicate = NSPredicate(format: "name BEGINSWITH 'card'")
        try context.execute(NSBatchDeleteRequest(fetchRequest: fetch))
      }
    case .trim:
      try FaultModel.withStore(a) { context in
        try context.execute(
          NSPersistentHistoryChangeRequest.deleteHistory(before: Date.distantFuture)
        )
      }
    case .lightweight: try migrate(a, [:])
    case .withoutFiles: try migrate(a, [:], hasFiles: false)
    case .staged: try migrate(a, [NSPersistentStoreStagedMigrationManagerOptionKey: Self.stages()])
    case .heavy: try migrateByObjects(a, folder.appendingPathComponent("new.sqlite"))
    case .replace: try replace(a, by: b)
    case .restore: try replace(a, by: b)
    case .move: try move(a, to: b, NSSQLiteStoreType)
    case .moveOver: try move(a, to: b, NSSQLiteStoreType)
    case .moveToBinary:
      try move(a, to: folder.appendingPathComponent("b.binary"), NSBinaryStoreType)
    case .destroy:
      try NSPersistentStoreCoordinator(managedObjectModel: FaultModel.make())
        .destroyPersistentStore(at: a, type: .sqlite)
    }
  }

  /// Inserts, updates a row to another file, and deletes, in one save.
  private static func change(_ context: NSManagedObjectContext) throws {
    let card = try object("Card", "card00", context)
    card.setValue(Data(repeating: 88, count: FaultModel.pictureSize), forKey: "picture")
    context.delete(try object("Card", "card01", context))
    FaultModel.insertCard("new", picture: 89, in: try object("Box", "box1", context), context)
    try context.save()
  }

  private static func object(
    _ entity: String,
    _ name: String,
    _ context: NSManagedObjectContext
  ) throws -> NSManagedObject {
    let request = NSFetchRequest<NSManagedObject>(entityName: entity)
    request.predicate = NSPredicate(format: "name == %@", name)
    guard let found = try context.fetch(request).first else {
      throw FaultState.Defect(description: "There is no \(entity) named \(name).")
    }
    return found
  }

  private func migrate(
    _ url: URL,
    _ more: [AnyHashable: Any],
    hasFiles: Bool = true
  ) throws {
    var options = FaultModel.options.merging(more) { $1 }
    options[NSMigratePersistentStoresAutomaticallyOption] = true
    options[NSInferMappingModelAutomaticallyOption] = true
    try FaultModel.withStore(
      url,
      model: FaultModel.make(isNewer: true, hasFiles: hasFiles),
      options: options
    ) { _ in }
  }

  private static func stages() -> NSStagedMigrationManager {
    let (older, newer) = (FaultModel.make(), FaultModel.make(isNewer: true))
    let stage = NSCustomMigrationStage(
      migratingFrom: NSManagedObjectModelReference(
        model: older,
        versionChecksum: older.versionChecksum
      ),
      to: NSManagedObjectModelReference(model: newer, versionChecksum: newer.versionChecksum)
    )
    stage.didMigrateHandler = { manager, _ in
      guard let context = manager.container?.newBackgroundContext() else { return }
      try context.performAndWait {
        // Not those of the other process, whose history is separate.
        let request = NSFetchRequest<NSManagedObject>(entityName: "Card")
        request.predicate = NSPredicate(format: "title BEGINSWITH 'card'")
        for card in try context.fetch(request) {
          card.setValue(4, forKey: "rating")
        }
        try context.save()
      }
    }
    return NSStagedMigrationManager([stage])
  }

  /// As in apps: migrates to another path, then replaces the old store.
  private func migrateByObjects(_ url: URL, _ place: URL) throws {
    let (older, newer) = (FaultModel.make(), FaultModel.make(isNewer: true))
    let coordinator = NSPersistentStoreCoordinator(managedObjectModel: newer)
    try coordinator.destroyPersistentStore(
      at: place,
      type: .sqlite,
      options: [NSPersistentStoreForceDestroyOption: true]
    )
    let found = try NSPersistentStoreCoordinator.metadataForPersistentStore(type: .sqlite, at: url)
    // An earlier run may have failed after the replacement.
    guard !newer.isConfiguration(withName: nil, compatibleWithStoreMetadata: found) else { return }
    let manager = NSMigrationManager(sourceModel: older, destinationModel: newer)
    manager.usesStoreSpecificMigrationManager = false
    try manager.migrateStore(
      from: url,
      type: .sqlite,
      mapping: .inferredMappingModel(forSourceModel: older, destinationModel: newer),
      to: place,
      type: .sqlite
    )
    try coordinator.replacePersistentStore(at: url, withPersistentStoreFrom: place, type: .sqlite)
    try coordinator.destroyPersistentStore(at: place, type: .sqlite)
  }

  private func replace(_ url: URL, by source: URL) throws {
    try NSPersistentStoreCoordinator(managedObjectModel: FaultModel.make())
      .replacePersistentStore(at: url, withPersistentStoreFrom: source, type: .sqlite)
  }

  private func move(_ url: URL, to place: URL, _ type: String) throws {
    let coordinator = NSPersistentStoreCoordinator(managedObjectModel: FaultModel.make())
    let store = try coordinator.addPersistentStore(
      ofType: NSSQLiteStoreType,
      configurationName: nil,
      at: url,
      options: FaultModel.options
    )
    var options = FaultModel.options
    options[NSPersistentStoreForceDestroyOption] = true
    let moved = Result {
      try coordinator.migratePersistentStore(store, to: place, options: options, withType: type)
    }
    for store in coordinator.persistentStores { try coordinator.remove(store) }
    _ = try moved.get()
  }
}
