import Foundation
import OpenCoreData

/// A shape of data or of work that grows: hubs, orders, chains, temporary identifiers, launches.
///
/// Each is measured at a size, at twice and at four times the size. Work that is proportional to the size
/// has the exponent 1, a quadratic one 2.
public struct GrowthShape: Sendable {
  /// What it is called in the report.
  public let name: String
  /// The smallest size that it is measured at.
  public let size: Int
  private let measured: @Sendable (GrowthStage, Int) throws -> Double

  /// The processor time in seconds at a size.
  public func seconds(_ size: Int) throws -> Double {
    let stage = try GrowthStage()
    defer { stage.remove() }
    return try measured(stage, size)
  }

  /// How the cost grows between a size and four times the size: the exponent of the size.
  public static func exponent(_ costs: [Double]) -> Double {
    guard let first = costs.first, let last = costs.last, first > 0, last > 0 else { return 0 }
    return log2(last / first) / 2
  }

  /// All shapes, in the order of the report.
  public static let all: [GrowthShape] = [
    GrowthShape(name: "hub: members join by their to-one, one save", size: 5000) { stage, size in
      let context = try stage.context()
      return try context.performAndWait {
        try GrowthStage.measure {
          _ = stage.hub(size, context)
          try context.save()
        }
      }
    },
    GrowthShape(name: "hub: 50 saves of one new member, loaded", size: 5000) { stage, size in
      let context = try stage.context()
      return try context.performAndWait {
        let hub = stage.hub(size, context)
        try context.save()
        return try GrowthStage.measure {
          for _ in 0..<50 {
            stage.item(hub, context)
            try context.save()
          }
        }
      }
    },
    GrowthShape(name: "hub: 50 saves of a child, one member each", size: 5000) { stage, size in
      let parent = try stage.context()
      let child = NSManagedObjectContext(.privateQueue)
      child.parent = parent
      let identifier = try parent.performAndWait {
        let hub = stage.hub(size, parent)
        try parent.save()
        return hub.objectID
      }
      return try child.performAndWait {
        let hub = child.object(with: identifier)
        _ = (hub.value(forKey: "items") as? Set<NSManagedObject>)?.count
        return try GrowthStage.measure {
          for _ in 0..<50 {
            stage.item(hub, child)
            try child.save()
          }
        }
      }
    },
    GrowthShape(name: "hub: members leave one by one, one save", size: 2500) { stage, size in
      let context = try stage.context()
      return try context.performAndWait {
        let hub = stage.hub(size, context)
        try context.save()
        let items = Array(hub.value(forKey: "items") as? Set<NSManagedObject> ?? [])
        return try GrowthStage.measure {
          for item in items { item.setValue(nil, forKey: "hub") }
          try context.save()
        }
      }
    },
    GrowthShape(name: "hub: deleted with its members", size: 5000) { stage, size in
      let context = try stage.context()
      return try context.performAndWait {
        let hub = stage.hub(size, context)
        try context.save()
        return try GrowthStage.measure {
          context.delete(hub)
          try context.save()
        }
      }
    },
    GrowthShape(name: "ordered set: members are appended, one save", size: 2500) { stage, size in
      try stage.ordered(size) { list, items in
        for item in items { list.add(item) }
      }
    },
    GrowthShape(name: "ordered set: members are put first, one save", size: 2500) { stage, size in
      try stage.ordered(size) { list, items in
        for item in items { list.insert(item, at: 0) }
      }
    },
    GrowthShape(name: "ordered set: the first member is removed, again and again", size: 2500) {
      stage,
      size in
      try stage.ordered(size, isFilled: true) { list, items in
        for item in items { list.remove(item) }
      }
    },
    GrowthShape(name: "temporary IDs: a child edits what its parent has not saved", size: 2500) {
      stage,
      size in
      let parent = try stage.context()
      let child = NSManagedObjectContext(.privateQueue)
      child.parent = parent
      return try GrowthStage.measure {
        try child.performAndWait {
          let items = (0..<size).map { _ in stage.item(nil, child) }
          try child.save()
          for item in items { item.setValue(7, forKey: "number") }
          try child.save()
        }
        try parent.performAndWait { try parent.save() }
      }
    },
    GrowthShape(name: "chain: a cascade as deep as it is long", size: 2500) { stage, size in
      let context = try stage.context()
      return try context.performAndWait {
        let first = stage.chain(size, context)
        try context.save()
        context.reset()
        let root = context.object(with: first)
        return try GrowthStage.measure {
          context.delete(root)
          try context.save()
        }
      }
    },
    GrowthShape(name: "launches: a store is opened, saved to and closed", size: 50) { stage, size in
      try GrowthStage.measure {
        for _ in 0..<size {
          let context = try stage.context()
          try context.performAndWait {
            stage.item(nil, context)
            try context.save()
          }
          try stage.close(context)
        }
      }
    },
    GrowthShape(name: "saves of one object, with history", size: 500) { stage, size in
      let context = try stage.context()
      return try context.performAndWait {
        try GrowthStage.measure {
          for _ in 0..<size {
            stage.item(nil, context)
            try context.save()
          }
        }
      }
    },
    GrowthShape(name: "merge: a save of many objects into a sibling", size: 2500) { stage, size in
      let context = try stage.context()
      let sibling = NSManagedObjectContext(.privateQueue)
      sibling.persistentStoreCoordinator = context.persistentStoreCoordinator
      let keys = try context.performAndWait {
        let items = (0..<size).map { _ in stage.item(nil, context) }
        try context.save()
        return items.map(\.objectID)
      }
      let read = try sibling.performAndWait {
        try sibling.fetch(NSFetchRequest<NSManagedObject>(entityName: "Item"))
      }
      return try withExtendedLifetime(read) {
        try GrowthStage.measure {
          sibling.performAndWait {
            NSManagedObjectContext.mergeChanges(
              fromRemoteContextSave: [NSUpdatedObjectsKey: keys],
              into: [sibling]
            )
          }
          try sibling.performAndWait { try sibling.save() }
        }
      }
    },
    GrowthShape(name: "undo: many changes in one group", size: 2500) { stage, size in
      let context = try stage.context()
      return try context.performAndWait {
        let items = (0..<size).map { _ in stage.item(nil, context) }
        try context.save()
        context.undoManager = UndoManager()
        return try GrowthStage.measure {
          for item in items { item.setValue(9, forKey: "number") }
          context.processPendingChanges()
          context.undo()
          context.redo()
          try context.save()
        }
      }
    },
    GrowthShape(name: "memory: IN over unsaved objects", size: 1000) { stage, size in
      let context = try stage.context()
      return try context.performAndWait {
        let items = (0..<size).map { _ in stage.item(nil, context) }
        let request = NSFetchRequest<NSManagedObject>(entityName: "Item")
        request.predicate = NSPredicate(format: "SELF IN %@", items)
        return try GrowthStage.measure { _ = try context.fetch(request) }
      }
    },
    GrowthShape(name: "memory: a collection's distinct values", size: 5000) { stage, size in
      let context = try stage.context()
      return context.performAndWait {
        let hub = stage.hub(size, context)
        return GrowthStage.measure {
          _ = hub.value(forKeyPath: "items.@distinctUnionOfObjects.name")
          _ = hub.value(forKeyPath: "items.@distinctUnionOfObjects.number")
        }
      }
    },
    GrowthShape(name: "rollback of many insertions", size: 5000) { stage, size in
      let context = try stage.context()
      return context.performAndWait {
        _ = stage.hub(size, context)
        return GrowthStage.measure { context.rollback() }
      }
    },
  ]
}
