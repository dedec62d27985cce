import Foundation

/// Whether a store was written with a model.
struct ModelCompatibility {
  let model: NSManagedObjectModel
  let configuration: String?
  let file: StoreFile
  let url: URL

  /// An error that names the differences of both sides; nil where they agree.
  func mismatch() -> StoreError? {
    let entities = model.entities(forConfigurationName: configuration) ?? []
    let ours = Dictionary(
      entities.compactMap { entity in entity.name.map { ($0, entity) } },
      uniquingKeysWith: { first, _ in first }
    )
    let stored = NSManagedObjectModel.versionHashes(inStoreMetadata: file.metadata) ?? [:]
    let unknown = stored.keys.filter { ours[$0] == nil }.sorted()
    let missing = ours.keys.filter { stored[$0] == nil }.sorted()
    let changed = changedEntities(ours, stored)
    guard !unknown.isEmpty || !missing.isEmpty || !changed.isEmpty else { return nil }
    return StoreError(
      .incompatibleVersionHash,
      "The model used to open the store is incompatible with the one used to create the store. "
        + description(unknown: unknown, missing: missing, changed: changed),
      remedy: "Open the store with the model that it was written with, or migrate it.",
      context: [
        "metadata": file.metadata,
        // Apps compare this text, which is Core Data's own.
        "reason": "The model used to open the store is incompatible with the one used to create "
          + "the store",
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

  /// The entities whose hashes differ.
  ///
  /// How Core Data hashes derived and composite attributes is not documented. Where the hash that
  /// we compute for the store's own copy of its model differs from the stored hash, ours is not
  /// comparable, and the two models are compared with each other instead.
  private func changedEntities(
    _ ours: [String: NSEntityDescription],
    _ stored: [String: Data]
  ) -> [String] {
    let differing = ours.keys.filter { name in
      stored[name] != nil && ours[name]?.versionHash != stored[name]
    }
    // Without a readable copy of the model, the stored hashes decide.
    guard !differing.isEmpty, let cached = (try? file.model())?.entityVersionHashesByName else {
      return differing.sorted()
    }
    return differing.filter { name in
      cached[name] == stored[name] || cached[name] != ours[name]?.versionHash
    }
    .sorted()
  }
}
