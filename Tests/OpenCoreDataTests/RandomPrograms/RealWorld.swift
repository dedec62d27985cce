import Foundation
import OpenCoreData
import Testing

/// Core Data in a random program: a store, contexts, and the objects by their numbers.
final class RealWorld {
  typealias Outcome = ReferenceWorld.Outcome

  private static let model = GraphSchema.makeModel(isUnique: false)
  private static let uniqueModel = GraphSchema.makeModel(isUnique: true)

  let layout: ProgramLayout
  let folder: StoreFolder?
  /// One, or one for each context.
  let coordinators: [NSPersistentStoreCoordinator]
  let contexts: [NSManagedObjectContext]
  /// The position up to which each context has merged the history.
  var tokens: [NSPersistentHistoryToken?]
  let saves: SaveNotes
  /// The objects by context and number.
  var objects: [[Int: NSManagedObject]]
  /// All identifiers that objects had at any time.
  var numbers: [NSManagedObjectID: Int] = [:]
  /// The latest identifiers, by coordinator.
  var identifiers: [[Int: NSManagedObjectID]]

  init(_ layout: ProgramLayout) throws {
    self.layout = layout
    let folder = layout.sharesFile ? try StoreFolder() : nil
    self.folder = folder
    coordinators = try (0..<(layout.sharesFile ? layout.contexts : 1)).map { _ in
      let coordinator = NSPersistentStoreCoordinator(
        managedObjectModel: layout.isUnique ? Self.uniqueModel : Self.model
      )
      try coordinator.addPersistentStore(
        ofType: NSSQLiteStoreType,
        configurationName: nil,
        at: folder?.url.appendingPathComponent("Store.sqlite") ?? URL(fileURLWithPath: "/dev/null"),
        options: [NSPersistentHistoryTrackingKey: true as NSNumber]
      )
      return coordinator
    }
    var contexts: [NSManagedObjectContext] = []
    for index in 0..<layout.contexts {
      let context = NSManagedObjectContext(
        concurrencyType: layout.hasTurns
          ? .privateQueueConcurrencyType : .confinementConcurrencyType
      )
      if layout.kind == .child, let parent = contexts.first {
        context.parent = parent
      } else {
        context.persistentStoreCoordinator = coordinators[index % coordinators.count]
      }
      context.mergePolicy = layout.policy
      if layout.kind == .undoing {
        let manager = UndoManager.manual()
        context.undoManager = manager
      }
      contexts.append(context)
    }
    self.contexts = contexts
    objects = [[Int: NSManagedObject]](repeating: [:], count: layout.contexts)
    identifiers = [[Int: NSManagedObjectID]](repeating: [:], count: coordinators.count)
    tokens = [NSPersistentHistoryToken?](repeating: nil, count: layout.contexts)
    saves = SaveNotes(contexts, merges: layout.kind == .merging && !layout.sharesFile)
  }

  deinit {
    // The folder is removed after its stores are closed.
    for coordinator in coordinators {
      for store in coordinator.persistentStores {
        do {
          try coordinator.remove(store)
        } catch {
          Issue.record(error)
        }
      }
    }
  }

  /// Runs a block in a turn of a context, if the layout has turns.
  func turn<Result>(
    _ index: Int,
    _ body: (NSManagedObjectContext) throws -> Result
  ) rethrows -> Result {
    let context = contexts[index]
    return layout.hasTurns ? try context.performAndWait { try body(context) } : try body(context)
  }

  // MARK: Objects

  /// The object of a number, a fault if it is not registered.
  func object(_ number: Int, _ index: Int) -> NSManagedObject? {
    if let known = objects[index][number] { return known }
    guard let identifier = identifiers[index % coordinators.count][number] else { return nil }
    let made = contexts[index].object(with: identifier)
    objects[index][number] = made
    return made
  }

  func number(_ object: NSManagedObject) -> Int { numbers[object.objectID] ?? -1 }

  func note(_ identifier: NSManagedObjectID, _ number: Int) {
    for (place, coordinator) in coordinators.enumerated() {
      let own =
        coordinators.count == 1
        ? identifier
        : coordinator.managedObjectID(forURIRepresentation: identifier.uriRepresentation())
      // A temporary identifier is unknown to other coordinators.
      let known = own ?? identifier
      numbers[known] = number
      if own != nil { identifiers[place][number] = known }
    }
    numbers[identifier] = number
  }

  /// Records the permanent identifiers of saved objects.
  func noteIdentifiers() {
    for index in contexts.indices {
      turn(index) { _ in
        for (number, object) in objects[index] where object.managedObjectContext != nil {
          note(object.objectID, number)
        }
      }
    }
  }
}
