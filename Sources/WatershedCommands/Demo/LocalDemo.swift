import Foundation
import OpenCoreData

/// Saves a sample graph of a model, reopens the store and compares, without a cloud.
struct LocalDemo {
  let model: DemoModel
  let seed: UInt64
  let folder: URL
  let reporter: DemoReporter

  func run() throws {
    let url = folder.appendingPathComponent("\(model.name).sqlite")
    reporter.chapter("\(model.name): saved, opened again and compared, without a cloud")
    let saved = try save(at: url)
    let read = try readBack(from: url)
    let differences = GraphSnapshot.differences(saved, read, names: ("saved", "reopened"))
    guard differences.isEmpty else {
      reporter.report(
        "demo",
        "differ",
        "The reopened store differs in \(differences.count) places.",
        count: differences.count,
        lines: differences
      )
      throw DemoFailure("The reopened store is not what was saved.")
    }
    reporter.report(
      "demo",
      "same",
      "Same in both: \(read.objectCount) objects, \(read.valueCount) values, "
        + "\(read.linkCount) links.",
      count: read.objectCount
    )
  }

  private func save(at url: URL) throws -> GraphSnapshot {
    let container = try open(url)
    let context = container.newBackgroundContext()
    let graph = SampleGraph(entities: model.model.entities, seed: seed)
    let start = reporter.elapsed
    let snapshot = try context.performAndWait {
      let inventory = graph.insert(into: context)
      try context.save()
      reporter.report(
        "demo",
        "saved",
        "\(inventory.objects) objects of \(inventory.entities.count) entities, "
          + "\(inventory.values) values, \(inventory.links) links",
        milliseconds: reporter.elapsed - start,
        count: inventory.objects
      )
      return try GraphSnapshot(of: model.model.entities, in: context) {
        $0.uriRepresentation().absoluteString
      }
    }
    try close(container)
    return snapshot
  }

  private func readBack(from url: URL) throws -> GraphSnapshot {
    let container = try open(url)
    let context = container.newBackgroundContext()
    let start = reporter.elapsed
    let snapshot = try context.performAndWait {
      try GraphSnapshot(of: model.model.entities, in: context) {
        $0.uriRepresentation().absoluteString
      }
    }
    reporter.report(
      "demo",
      "reopened",
      "\(snapshot.objectCount) objects read from \(url.lastPathComponent)",
      milliseconds: reporter.elapsed - start,
      count: snapshot.objectCount
    )
    try close(container)
    return snapshot
  }

  private func open(_ url: URL) throws -> NSPersistentContainer {
    let container = NSPersistentContainer(name: model.name, managedObjectModel: model.model)
    container.persistentStoreDescriptions = [NSPersistentStoreDescription(url: url)]
    var failure: (any Error)?
    container.loadPersistentStores { _, error in failure = error }
    if let failure { throw failure }
    return container
  }

  private func close(_ container: NSPersistentContainer) throws {
    let coordinator = container.persistentStoreCoordinator
    for store in coordinator.persistentStores { try coordinator.remove(store) }
  }
}
