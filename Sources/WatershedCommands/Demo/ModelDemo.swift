import CloudKitMirroring
import Foundation
import OpenCoreData

/// A sample graph of any model, mirrored from one device to the other and compared.
struct ModelDemo {
  let world: DemoWorld
  let model: DemoModel
  let seed: UInt64

  func run() async throws {
    let reporter = world.reporter
    reporter.chapter("\(model.name): a sample of everything, saved on the phone")
    let start = reporter.elapsed
    let graph = SampleGraph(entities: model.model.entities, seed: seed)
    let inventory = try await world.phone.perform { context in
      let inventory = graph.insert(into: context)
      try context.save()
      return inventory
    }
    reporter.report(
      "phone",
      "saved",
      "\(inventory.objects) objects of \(inventory.entities.count) entities, "
        + "\(inventory.values) values, \(inventory.links) links",
      milliseconds: reporter.elapsed - start,
      count: inventory.objects
    )
    let saved = reporter.elapsed
    try await world.until("everything has arrived on the laptop") {
      let hasSent = try await world.phone.isSettled()
      let arrived = try await world.laptop.snapshot().objectCount
      guard hasSent, arrived == inventory.objects else { return false }
      return try await world.differences().isEmpty
    }
    reporter.report(
      "laptop",
      "sees",
      "all of it",
      milliseconds: reporter.elapsed - saved,
      count: inventory.objects
    )
  }

  /// The rules of CloudKit that the model violates, in Apple's words; empty if there are none.
  static func violations(of model: NSManagedObjectModel) -> [String] {
    CloudKitModelRules.violations(of: model, configuration: nil).map(\.text)
  }
}
