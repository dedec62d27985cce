import Foundation

/// The arguments for creating an app's own store.
public struct NSPersistentStoreOpening {
  let coordinator: NSPersistentStoreCoordinator
  let configurationName: String?
  let url: URL
  let options: [AnyHashable: Any]?
}

/// A store whose class was registered by an app.
protocol CustomStore: NSPersistentStore {
  /// Creates the store with its designated initializer, which an app may have overridden.
  init(_opening opening: NSPersistentStoreOpening)

  /// The store's binding in its coordinator, set before it is loaded.
  var binding: StoreBinding? { get set }

  /// Creates the row store through which the rows are read and written.
  func makeRows(_ entities: CustomStoreEntities) -> any RowStore

  /// Loads the contents that the store keeps in memory.
  func loadContents() throws
}

extension CustomStore {
  /// The identifier of an object, by the store's reference object.
  func objectID(_ entity: NSEntityDescription, _ reference: Any) -> NSManagedObjectID {
    guard let binding, let table = binding.references else {
      preconditionFailure("The store has no coordinator, so it cannot make object IDs.")
    }
    guard let template = binding.template(named: entity.name ?? "") else {
      preconditionFailure(
        "The model of the store's coordinator does not have the entity '\(entity.name ?? "")'."
      )
    }
    return NSManagedObjectID(
      key: ObjectKey(
        store: binding.number,
        reference: RowReference(
          entityNumber: binding.entityNumber(named: entity.name ?? ""),
          key: table.key(of: reference)
        )
      ),
      binding: binding,
      template: template
    )
  }

  /// The store's reference object of an identifier.
  func reference(behind objectID: NSManagedObjectID) -> Any {
    guard let table = objectID.binding?.references ?? binding?.references else {
      preconditionFailure("The store has no coordinator, so it knows no object IDs.")
    }
    precondition(
      !objectID.isTemporaryID,
      "The object ID \(objectID) is temporary, so no store has a reference object for it."
    )
    return table.object(of: objectID.key.reference.key)
  }
}

/// The entities of a custom store, with the numbers that a new SQLite store would assign, so that
/// an object keeps its key when its store is migrated to another type.
final class CustomStoreEntities: Sendable {
  private let layouts: [Int32: EntityLayout]
  private let numbers: [String: Int32]

  init(model: NSManagedObjectModel, configuration: String?) {
    let members = model.entities(forConfigurationName: configuration) ?? model.entities
    // Without an existing file numbering can't fail.
    let numbered = (try? EntityNumbering.numbers(of: members, existing: nil)) ?? []
    layouts = Dictionary(uniqueKeysWithValues: numbered.map { ($0.number, $0.entity.layout) })
    numbers = Dictionary(
      numbered.map { ($0.name, $0.number) },
      uniquingKeysWith: { first, _ in first }
    )
  }

  func number(named name: String) -> Int32? { numbers[name] }

  func layout(number: Int32) -> EntityLayout? { layouts[number] }

  func layout(named name: String) -> EntityLayout? { numbers[name].flatMap { layouts[$0] } }

  func number(of entity: NSEntityDescription) throws -> Int32 {
    if let number = numbers[entity.name ?? ""] { return number }
    throw CoreDataError.make(
      NSPersistentStoreOperationError,
      "The store does not hold the entity \(entity.name ?? "")."
    )
  }

  /// The numbers of an entity and, optionally, of its subentities.
  func numbers(of entity: NSEntityDescription, includingSubentities: Bool) -> Set<Int32> {
    guard let own = numbers[entity.name ?? ""] else { return [] }
    guard includingSubentities, let layout = layout(number: own) else { return [own] }
    return Set(layout.concreteSubentities.compactMap { numbers[$0.name ?? ""] } + [own])
  }
}
