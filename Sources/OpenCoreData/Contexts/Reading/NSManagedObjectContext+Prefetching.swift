extension NSManagedObjectContext {
  /// Loads relationships of many objects with one query for each step of a key path.
  ///
  /// All key paths of a portion of the objects are loaded before the next portion begins, while
  /// what the first path loaded is still cached.
  func prefetch(_ keyPaths: [String], of objects: [NSManagedObject]) throws {
    guard !keyPaths.isEmpty else { return }
    let paths = keyPaths.map { $0.split(separator: ".").map(String.init) }
    var notes = PrefetchNotes()
    var start = 0
    while start < objects.count {
      let portion = start..<min(start + Self.fulfilledAtOnce, objects.count)
      start = portion.upperBound
      for keys in paths {
        if keys.count == 1, fulfill(keys[0], of: objects, in: portion, &notes) { continue }
        var current = Array(objects[portion])
        for (step, key) in keys.enumerated() {
          current = prefetch(key, of: current, isLast: step == keys.count - 1, &notes)
          if current.isEmpty { break }
        }
      }
    }
  }

  /// Loads a to-many of objects that share an entity and have none of it loaded; returns false for
  /// others.
  ///
  /// This is the most frequent prefetch, and it iterates over the objects once.
  private func fulfill(
    _ key: String,
    of objects: [NSManagedObject],
    in portion: Range<Int>,
    _ notes: inout PrefetchNotes
  ) -> Bool {
    let first = objects[portion.lowerBound]
    let template = first.templateReference
    guard !isChild, portion.count > 1, let binding = first.binding,
      case .toMany(let index) = first.template.layout.slot(named: key)
    else { return false }
    let areAlike = objects.allUncounted(in: portion) {
      $0.templateReference.toOpaque() == template.toOpaque() && $0.isBound(to: binding)
        && $0.lacksToMany(at: index)
    }
    guard areAlike else { return false }
    let relationship = first.template.toManys[index].slot.description
    fulfill(relationship, at: index, of: objects, in: portion, binding, &notes)
    return true
  }

  /// Loads one relationship and returns its members, unless it is the last of its key path.
  private func prefetch(
    _ key: String,
    of objects: [NSManagedObject],
    isLast: Bool,
    _ notes: inout PrefetchNotes
  ) -> [NSManagedObject] {
    var next = ObjectBag()
    for (template, objects) in grouped(objects) {
      switch template.layout.slot(named: key) {
      case .toOne(let index):
        attachRows(to: objects)
        for object in objects {
          if let destination = object.toOne(at: index) { next.append(destination) }
        }
      case .toMany(let index):
        let unknown = objects.filterUncounted { $0.lacksToMany(at: index) }
        let known =
          unknown.count == objects.count ? [] : objects.filter { !$0.lacksToMany(at: index) }
        // This also attaches rows to members that were faults.
        fulfillToMany(at: index, of: unknown, &notes)
        for object in isLast ? known : objects {
          for member in object.memberSet(at: index).members { next.append(member) }
        }
      default:
        continue
      }
    }
    attachRows(to: next.items)
    return next.items
  }
}

/// Results of prefetching one portion of the objects, used for the next portions.
struct PrefetchNotes {
  /// The number of rows that were read with the members.
  var broughtRows = 0
  private var known: Set<ObjectIdentifier> = []

  /// Whether most members of a relationship were already registered with their rows.
  func knowsMembers(of relationship: NSRelationshipDescription) -> Bool {
    known.contains(ObjectIdentifier(relationship))
  }

  mutating func noteKnownMembers(of relationship: NSRelationshipDescription) {
    known.insert(ObjectIdentifier(relationship))
  }
}
