import Foundation

/// Finds the names of the properties that a Swift key path refers to.
///
/// A Swift key path does not know its names at run time. An empty object of an entity like the
/// class's own is read through the key path, and its layout notes the names that the accessors
/// ask for. That works for every way of writing accessors, as all of them go through the layout.
package enum KeyPathNames {
  /// The names that were found for each key path; nil for a key path over a property that no model has.
  private final class Known: @unchecked Sendable {
    // Sendable: read and written under the lock; key paths are immutable.
    private let lock = NSLock()
    private var names: [AnyKeyPath: String?] = [:]

    subscript(keyPath: AnyKeyPath) -> String?? {
      get { lock.withLock { names[keyPath] } }
      set { lock.withLock { names[keyPath] = newValue } }
    }
  }

  private static let known = Known()
  /// The most to-one relationships that a key path may cross.
  private static let limit = 8

  /// The key path as text, such as "author.name".
  static func name(of keyPath: AnyKeyPath, from layout: EntityLayout) -> String? {
    if let name = known[keyPath] { return name }
    let name = stateName(of: keyPath) ?? path(of: keyPath, from: layout)?.joined(separator: ".")
    known[keyPath] = .some(name)
    return name
  }

  /// The name of a property that every managed object has, such as `hasChanges`.
  static func stateName(of keyPath: AnyKeyPath) -> String? {
    (type(of: keyPath).rootType as? any KeyValueObservable.Type)?.stateKeyPaths[keyPath]
  }

  private static func path(of keyPath: AnyKeyPath, from layout: EntityLayout) -> [String]? {
    var prefix: [String] = []
    while prefix.count < limit {
      let (names, crossed) = record(keyPath, from: layout, answering: prefix)
      // An accessor that reads several properties stands for none of them.
      guard names.starts(with: prefix), names.count <= max(prefix.count, crossed) + 1 else {
        return nil
      }
      guard names.count > prefix.count else {
        return prefix.isEmpty ? nil : prefix
      }
      guard leadsToOne(names, from: layout) else { return names }
      prefix = names
    }
    return prefix
  }

  /// Reads the key path from an object whose to-one relationships of the prefix have a destination.
  private static func record(
    _ keyPath: AnyKeyPath,
    from layout: EntityLayout,
    answering prefix: [String]
  ) -> (names: [String], crossed: Int) {
    let recorder = NameRecorder()
    let root = object(like: layout.entity, recorder, answering: prefix[...])
    recorder.names = []
    recorder.crossed = prefix.count
    let value = (root as Any)[keyPath: keyPath]
    _ = value
    return (recorder.names, recorder.crossed)
  }

  /// The destination that an accessor reads which cannot return nil: it would stop the program.
  static func destination(of name: String, in layout: EntityLayout) -> NSManagedObject? {
    guard let recorder = layout.recorder,
      let relationship = layout.entity.relationshipsByName[name], !relationship.isToMany,
      let destination = relationship.destinationEntity
    else { return nil }
    if recorder.crossed == recorder.names.count - 1 { recorder.crossed += 1 }
    let count = recorder.names.count
    let object = object(like: destination, recorder, answering: [])
    recorder.names.removeSubrange(count...)
    return object
  }

  private static func object(
    like entity: NSEntityDescription,
    _ recorder: NameRecorder,
    answering prefix: ArraySlice<String>
  ) -> NSManagedObject {
    let copy = NSEntityDescription()
    copy.name = entity.name
    copy.rawClassName = entity.rawClassName
    copy.properties = entity.properties.compactMap { $0.copy() as? NSPropertyDescription }
    // The inverses lead to the entity that was copied, not to the copy.
    for case let relationship as NSRelationshipDescription in copy.properties {
      relationship.inverseRelationship = nil
    }
    let model = NSManagedObjectModel()
    model.entities = [copy]
    model.freeze()
    copy.layout.recorder = recorder
    let template = ObjectTemplate.of(copy)
    let type = ObjectTemplate.of(entity).type
    let object = type.init(_row: .temporary(template))
    object.state = []
    object.values = template.defaults
    if let name = prefix.first, case .toOne(let index) = template.layout.slot(named: name),
      let destination = entity.relationshipsByName[name]?.destinationEntity
    {
      object.toOneObjects = [NSManagedObject?](repeating: nil, count: template.toOnes.count)
      object.toOneObjects[index] = self.object(
        like: destination,
        recorder,
        answering: prefix.dropFirst()
      )
    }
    return object
  }

  private static func leadsToOne(_ names: [String], from layout: EntityLayout) -> Bool {
    var entity: NSEntityDescription? = layout.entity
    for name in names {
      guard let relationship = entity?.relationshipsByName[name], !relationship.isToMany else {
        return false
      }
      entity = relationship.destinationEntity
    }
    return true
  }
}

/// The names that accessors looked up in a layout.
final class NameRecorder: @unchecked Sendable {
  // Sendable: each is used within one call, on one thread.
  var names: [String] = []
  /// How many of the first names are to-one relationships that were read from one another.
  var crossed = 0
}
