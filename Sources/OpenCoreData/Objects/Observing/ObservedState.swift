import Foundation

/// The state that an object's observers were last notified of, for `hasChanges` and similar keys.
///
/// The state changes in many places, some of them within a save. Observers are notified when a
/// change is complete, with the former value, so that what they read from the object is consistent.
struct ObservedState {
  /// Key-value coding's keys, with the bits of the state that they stand for.
  private static let keys: [(key: String, bits: ObjectState)] = [
    ("hasChanges", [.inserted, .updated, .deleted]),
    ("isInserted", .inserted), ("inserted", .inserted),
    ("isUpdated", .updated), ("updated", .updated),
    ("isDeleted", .deleted), ("deleted", .deleted),
    ("isFault", .fault), ("fault", .fault),
    ("faultingState", .fault),
  ]
  private static let bits: ObjectState = [.inserted, .updated, .deleted, .fault]

  /// Whether a key is of the object itself, and not a property that may be loaded or refreshed.
  static func covers(_ key: String) -> Bool {
    others.contains(key) || keys.contains { $0.key == key }
  }

  private static let others: Set<String> = ["managedObjectContext", "objectID", "entity", "self"]

  private var state: ObjectState
  private weak var context: NSManagedObjectContext?

  init(of object: NSManagedObject) {
    state = object.state.intersection(Self.bits)
    context = object.context
  }

  /// The keys whose values changed since, with their former values.
  func changes(of object: NSManagedObject) -> [(key: String, old: Any)] {
    let now = object.state
    var result: [(key: String, old: Any)] = []
    for (key, bits) in Self.keys {
      let was = !state.isDisjoint(with: bits)
      guard was != !now.isDisjoint(with: bits) else { continue }
      result.append(
        (key, key == "faultingState" ? NSNumber(value: was ? 1 : 0) : NSNumber(value: was))
      )
    }
    if context !== object.context {
      result.append(("managedObjectContext", context.map { $0 as Any } ?? NSNull()))
    }
    return result
  }
}

extension NSManagedObject {
  /// Notifies the observers of the object's state of its changes.
  @inline(__always)
  final func noteState() {
    if state.contains(.observed) { observers?.noteState() }
  }
}

extension KeyValueObservable {
  /// The names of the properties that every object has, by the key paths of the class.
  static var stateKeyPaths: [AnyKeyPath: String] {
    [
      \Self.hasChanges: "hasChanges",
      \Self.hasPersistentChangedValues: "hasPersistentChangedValues",
      \Self.isInserted: "isInserted",
      \Self.isUpdated: "isUpdated",
      \Self.isDeleted: "isDeleted",
      \Self.isFault: "isFault",
      \Self.faultingState: "faultingState",
      \Self.objectID: "objectID",
      \Self.entity: "entity",
      \Self.managedObjectContext: "managedObjectContext",
      \Self.description: "description",
      \Self.hash: "hash",
      \Self.self: "self",
    ]
  }
}
