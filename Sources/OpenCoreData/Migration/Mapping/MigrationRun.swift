import Foundation

/// One pass of a migration manager: its contexts, and the current mapping.
final class MigrationRun {
  let mappingModel: NSMappingModel
  let sourceContext: NSManagedObjectContext
  let destinationContext: NSManagedObjectContext
  private(set) var currentMapping: NSEntityMapping?
  private unowned let manager: NSMigrationManager

  private var policies: [ObjectIdentifier: NSEntityMigrationPolicy] = [:]
  private var done: Float = 0

  /// Creation, relationships, validation.
  private static let rounds: Float = 3

  init(
    manager: NSMigrationManager,
    mappingModel: NSMappingModel,
    source: NSPersistentStoreCoordinator,
    destination: NSPersistentStoreCoordinator
  ) {
    self.manager = manager
    self.mappingModel = mappingModel
    sourceContext = NSManagedObjectContext(concurrencyType: .privateQueueConcurrencyType)
    sourceContext.persistentStoreCoordinator = source
    sourceContext.refusesUnreadableValues = true
    destinationContext = NSManagedObjectContext(concurrencyType: .privateQueueConcurrencyType)
    destinationContext.persistentStoreCoordinator = destination
  }

  func start() throws {
    let mappings = mappingModel.entityMappings ?? []
    for mapping in mappings { policies[ObjectIdentifier(mapping)] = try makePolicy(for: mapping) }
    try forEach(mappings, create)
    try forEach(mappings, relate)
    try forEach(mappings) { mapping, policy in
      try policy.performCustomValidation(forMapping: mapping, manager: manager)
      try policy.end(mapping, manager: manager)
    }
    try requireGoingOn()
    do {
      // An object or a relationship of the source that could not be read reads as empty.
      try sourceContext.raiseReadFailure()
    } catch {
      throw MigrationError.make(
        NSMigrationManagerSourceStoreError,
        ["reason": "\((error as NSError).localizedDescription)", NSUnderlyingErrorKey: error]
      )
    }
    do {
      try destinationContext.save()
    } catch {
      throw MigrationError.make(
        NSMigrationManagerDestinationStoreError,
        ["reason": "\((error as NSError).localizedDescription)", NSUnderlyingErrorKey: error]
      )
    }
    currentMapping = nil
    manager.report(1)
  }

  private func forEach(
    _ mappings: [NSEntityMapping],
    _ body: (NSEntityMapping, NSEntityMigrationPolicy) throws -> Void
  ) throws {
    for mapping in mappings {
      guard let policy = policies[ObjectIdentifier(mapping)] else { continue }
      currentMapping = mapping
      do {
        try body(mapping, policy)
      } catch let error as Cancellation {
        throw error.reason
      } catch {
        try requireGoingOn()
        throw failure(error, mapping)
      }
      done += 1
      // The last step is the save.
      manager.report(done / (Self.rounds * Float(mappings.count) + 1))
      try requireGoingOn()
    }
  }

  // MARK: Rounds

  private func create(_ mapping: NSEntityMapping, _ policy: NSEntityMigrationPolicy) throws {
    try policy.begin(mapping, with: manager)
    for source in try sources(of: mapping) {
      try policy.createDestinationInstances(forSource: source, in: mapping, manager: manager)
      try stopIfCancelled()
    }
    try policy.endInstanceCreation(forMapping: mapping, manager: manager)
  }

  private func relate(_ mapping: NSEntityMapping, _ policy: NSEntityMigrationPolicy) throws {
    for destination in manager.associations.destinations(of: nil, by: mapping) {
      try policy.createRelationships(forDestination: destination, in: mapping, manager: manager)
      try stopIfCancelled()
    }
    try policy.endRelationshipCreation(forMapping: mapping, manager: manager)
  }

  private func sources(of mapping: NSEntityMapping) throws -> [NSManagedObject] {
    switch mapping.mappingType {
    case .addEntityMappingType, .removeEntityMappingType: return []
    default: break
    }
    guard let entity = manager.sourceEntity(for: mapping), isHeld(entity) else { return [] }
    let expression = mapping.sourceExpression ?? InferredMappings.allObjects(of: entity.name ?? "")
    let value = try MappingValues.value(
      of: expression,
      [NSMigrationManagerKey: manager, NSMigrationEntityMappingKey: mapping],
      manager
    )
    if let request = value as? NSFetchRequest<NSManagedObject> {
      return try sourceContext.fetch(request)
    }
    return MappingValues.objects(in: value)
  }

  /// Whether the source store has the entity: one with a configuration lacks those of others.
  private func isHeld(_ entity: NSEntityDescription) -> Bool {
    let bindings = sourceContext.persistentStoreCoordinator?.bindings ?? []
    return bindings.contains { $0.holdsAny(of: entity) }
  }

  // MARK: Stopping

  private struct Cancellation: Error {
    let reason: any Error
  }

  private func stopIfCancelled() throws {
    if let reason = manager.cancellation { throw Cancellation(reason: reason) }
  }

  private func requireGoingOn() throws {
    if let reason = manager.cancellation { throw reason }
  }

  private func failure(_ error: any Error, _ mapping: NSEntityMapping) -> NSError {
    let cause = error as NSError
    if cause.code == NSEntityMigrationPolicyError, cause.domain == NSCocoaErrorDomain {
      return cause
    }
    return MigrationError.make(
      NSEntityMigrationPolicyError,
      [
        "reason": cause.userInfo["reason"] as? String ?? cause.localizedDescription,
        "entityMapping": mapping.name ?? "",
        NSUnderlyingErrorKey: error,
      ]
    )
  }

  // MARK: Policies

  private func makePolicy(for mapping: NSEntityMapping) throws -> NSEntityMigrationPolicy {
    guard let name = mapping.entityMigrationPolicyClassName, !name.isEmpty else {
      return NSEntityMigrationPolicy()
    }
    let candidates = ManagedObjectClassResolver.candidates(
      className: name,
      near: manager.destinationModel.sourceURL
    )
    for candidate in candidates {
      if let type = NSClassFromString(candidate) as? NSEntityMigrationPolicy.Type {
        return type.init()
      }
    }
    if !name.contains("."),
      let type = TypeRecords.onlyClass(named: name, of: NSEntityMigrationPolicy.self)
    {
      return type.init()
    }
    throw MigrationError.make(
      NSEntityMigrationPolicyError,
      [
        "reason": "Couldn't create entity migration policy: there is no class \(name). "
          + "Looked for \(candidates.joined(separator: ", ")).",
        "entityMapping": mapping.name ?? "",
      ]
    )
  }
}
