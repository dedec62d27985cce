import Foundation

extension NSManagedObjectModel {
  /// Merges models into one; it stops the process if two models define an entity differently.
  ///
  /// An entity that is equal in several models is merged once.
  public convenience init?(byMerging models: [NSManagedObjectModel]?) {
    guard let models else { return nil }
    self.init()
    var chosen: [String: NSEntityDescription] = [:]
    var order: [NSEntityDescription] = []
    for entity in models.flatMap(\.entities) {
      guard let name = entity.name else { continue }
      if let present = chosen[name] {
        guard present.versionHash == entity.versionHash else {
          fatalError("Can't merge models with two different entities named '\(name)'")
        }
        continue
      }
      chosen[name] = entity
      order.append(entity)
    }
    ModelCopier.fill(self, with: order)
    for model in models { ModelCopier.copyAttachments(of: model, into: self) }
  }

  /// Merges the entities of the models that a store was written with; nil if one is missing.
  public convenience init?(
    byMerging models: [NSManagedObjectModel],
    forStoreMetadata metadata: [String: Any]
  ) {
    guard let written = Self.versionHashes(inStoreMetadata: metadata) else { return nil }
    let stored = ForeignHashes.translated(written)
    // A single model that matches the store is preferred to entities of several versions.
    let whole = models.first { $0.entityVersionHashesByName == stored }
    var order: [NSEntityDescription] = []
    var missing = stored
    for entity in (whole.map { [$0] } ?? models).flatMap(\.entities) {
      guard let name = entity.name, let hash = missing[name], hash == entity.versionHash else {
        continue
      }
      missing[name] = nil
      order.append(entity)
    }
    guard missing.isEmpty else { return nil }
    self.init()
    ModelCopier.fill(self, with: order)
    for model in whole.map({ [$0] }) ?? models {
      ModelCopier.copyAttachments(of: model, into: self)
    }
  }
}
