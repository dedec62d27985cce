import Foundation

/// Whether a store was written with a model.
struct ModelCompatibility {
  let model: NSManagedObjectModel
  let configuration: String?
  let file: StoreFile
  let url: URL

  /// Throws with both sides named where they differ.
  func require() throws {
    let entities = model.entities(forConfigurationName: configuration) ?? []
    let ours = Dictionary(
      entities.compactMap { entity in entity.name.map { ($0, entity) } },
      uniquingKeysWith: { first, _ in first }
    )
    let stored = NSManagedObjectModel.versionHashes(inStoreMetadata: file.metadata) ?? [:]
    let unknown = stored.keys.filter { ours[$0] == nil }.sorted()
    let missing = ours.keys.filter { stored[$0] == nil }.sorted()
    let cached = cachedHashes(forNeed: ours.values.contains(where: Self.hasUnknownHash))
    let changed = ours.keys.filter { name in
      guard let entity = ours[name], let hash = stored[name] else { return false }
      if entity.versionHash == hash { return false }
      // How Core Data hashes a derived attribute is not known; then the store's own copy of its
      // model decides.
      guard Self.hasUnknownHash(entity), let cached else { return true }
      return cached[name] != entity.versionHash
    }
    .sorted()
    guard !unknown.isEmpty || !missing.isEmpty || !changed.isEmpty else { return }
    throw StoreError(
      .incompatibleVersionHash,
      "The model used to open the store is incompatible with the one used to create the store. "
        + description(unknown: unknown, missing: missing, changed: changed),
      remedy: "Open the store with the model that it was written with, or migrate it.",
      context: [
        "metadata": file.metadata,
        "NSFilePath": url.path,
        "storeEntities": stored.keys.sorted(),
        "modelEntities": ours.keys.sorted(),
        "changedEntities": changed,
      ]
    )
  }

  private func description(unknown: [String], missing: [String], changed: [String]) -> String {
    var parts: [String] = []
    let modelName = model.sourceURL?.lastPathComponent ?? "the model"
    if !unknown.isEmpty {
      parts.append("only the store \(url.lastPathComponent) has \(unknown.joined(separator: ", "))")
    }
    if !missing.isEmpty {
      parts.append("only \(modelName) has \(missing.joined(separator: ", "))")
    }
    if !changed.isEmpty {
      parts.append("they differ in \(changed.joined(separator: ", "))")
    }
    return "Between \(url.lastPathComponent) and \(modelName): "
      + parts.joined(separator: "; ") + "."
  }

  private func cachedHashes(forNeed isNeeded: Bool) -> [String: Data]? {
    guard isNeeded else { return nil }
    return (try? file.model())?.entityVersionHashesByName
  }

  /// The hash of a parent goes into those of its children.
  private static func hasUnknownHash(_ entity: NSEntityDescription) -> Bool {
    entity.properties.contains {
      $0 is NSDerivedAttributeDescription || $0 is NSCompositeAttributeDescription
    }
  }
}
