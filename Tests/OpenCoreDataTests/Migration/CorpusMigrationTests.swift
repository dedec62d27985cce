import Foundation
import OpenCoreData
import Testing

@Suite(
  "Published stores and the later versions of their models",
  .enabled(if: Corpus.isPresent, "the corpus is not here: see WATERSHED_SHARED")
)
struct CorpusMigrationTests {
  /// The versions of each model package, the oldest first.
  private static func families() throws -> [(name: String, versions: [ModelFile.Version])] {
    let folder = try #require(Corpus.folder).appendingPathComponent("models")
    return try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
      .filter { $0.pathExtension == "xcdatamodeld" }
      .sorted { $0.path < $1.path }
      .map { package in
        let versions = ModelFile.readableVersions(of: package).sorted {
          $0.name.compare($1.name, options: .numeric) == .orderedAscending
        }
        // "Model" sorts before "Model 2", and before "Model2".
        return (package.lastPathComponent, versions)
      }
  }

  /// Every row's values by entity and key, as text.
  private func rows(_ url: URL, _ model: NSManagedObjectModel) throws -> [String: [String: String]]
  {
    let coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
    let store = try coordinator.addPersistentStore(
      ofType: NSSQLiteStoreType,
      configurationName: nil,
      at: url,
      options: [NSReadOnlyPersistentStoreOption: true]
    )
    let context = NSManagedObjectContext(concurrencyType: .privateQueueConcurrencyType)
    context.persistentStoreCoordinator = coordinator
    let result = try context.performAndWait {
      var result: [String: [String: String]] = [:]
      for root in model.entities where root.superentity == nil {
        for object in try context.all(root.name ?? "") {
          var values: [String: String] = [:]
          for (name, attribute) in object.entity.attributesByName where !attribute.isTransient {
            values[name] = "\(object.value(forKey: name) ?? "nil")"
          }
          for (name, relationship) in object.entity.relationshipsByName {
            let value = object.value(forKey: name)
            let count =
              relationship.isToMany
              ? (value as? NSSet)?.count ?? (value as? NSOrderedSet)?.count ?? 0
              : value == nil ? 0 : 1
            values[name] = "\(count)"
          }
          let key = object.objectID.uriRepresentation().lastPathComponent
          result["\(object.entity.name ?? "") \(key)"] = values
        }
      }
      return result
    }
    try coordinator.remove(store)
    return result
  }

  @Test("Each store is migrated to all later versions, stepwise and directly, and keeps its values")
  func everyStore() throws {
    var report: [String] = []
    for name in Corpus.storeNames {
      let scratch = try ScratchFolder()
      let original = try Corpus.copyStore(name, to: scratch.url)
      let metadata = try NSPersistentStoreCoordinator.metadataForPersistentStore(
        ofType: NSSQLiteStoreType,
        at: original
      )
      for (family, versions) in try Self.families() {
        guard
          let start = versions.firstIndex(where: {
            $0.model.isConfiguration(withName: nil, compatibleWithStoreMetadata: metadata)
          })
        else { continue }
        for target in versions.indices where target > start {
          let path = "\(name): \(versions[start].name) to \(versions[target].name) of \(family)"
          let jump = try migrate(name, [versions[start].model, versions[target].model], path)
          let steps = try migrate(name, versions[start...target].map(\.model), path + " by steps")
          report.append("\(path): \(jump), \(steps)")
        }
      }
    }
    #expect(report.count { $0.hasSuffix("done, done") } >= 12, "\(report.joined(separator: "\n"))")
    // Each refusal has a reason that a developer must resolve.
    for line in report where !line.hasSuffix("done, done") {
      #expect(line.contains("incompatible") || line.contains("mandatory"), "\(line)")
    }
  }

  private func migrate(
    _ name: String,
    _ models: [NSManagedObjectModel],
    _ path: String
  ) throws -> String {
    let scratch = try ScratchFolder()
    let url = try Corpus.copyStore(name, to: scratch.url)
    var before = try rows(url, models[0])
    for (older, newer) in zip(models, models.dropFirst()) {
      do {
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: newer)
        let store = try coordinator.addPersistentStore(
          ofType: NSSQLiteStoreType,
          configurationName: nil,
          at: url,
          options: MigrationBench.lightweight
        )
        try coordinator.remove(store)
      } catch {
        let error = error as NSError
        let cause = error.userInfo[NSUnderlyingErrorKey] as? NSError
        #expect(try rows(url, older) == before, "\(path): refused, but changed")
        return "\(cause?.userInfo["reason"] ?? error)"
      }
      let after = try rows(url, newer)
      compare(before, after, older, newer, path)
      before = after
    }
    return "done"
  }

  private func compare(
    _ before: [String: [String: String]],
    _ after: [String: [String: String]],
    _ older: NSManagedObjectModel,
    _ newer: NSManagedObjectModel,
    _ path: String
  ) {
    let names = Dictionary(
      newer.entities.map { ($0.renamingIdentifier ?? "", $0) },
      uniquingKeysWith: { first, _ in first }
    )
    var expected = 0
    for (row, values) in before {
      let parts = row.split(separator: " ")
      let entity = older.entitiesByName[String(parts[0])]
      guard
        let successor = newer.entitiesByName[String(parts[0])]
          ?? names[entity?.renamingIdentifier ?? ""]
      else { continue }
      expected += 1
      guard let found = after["\(successor.name ?? "") \(parts[1])"] else {
        Issue.record("\(path): the row \(row) is gone")
        continue
      }
      for (name, property) in successor.propertiesByName {
        guard let former = entity?.propertiesByName[name], !former.isTransient,
          !property.isTransient, let value = values[name],
          former is NSAttributeDescription == (property is NSAttributeDescription),
          !(former is NSAttributeDescription) || value != "nil" || property.isOptional
        else { continue }
        #expect(found[name] == value, "\(path): \(row).\(name)")
      }
    }
    #expect(after.count == expected, "\(path): rows that were not there before")
  }
}
