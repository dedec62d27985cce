import Foundation

/// Relationships in memory that lead to objects that are gone.
extension NSManagedObjectContext {
  /// One side of a relationship in which nothing is known of who refers to a deleted object.
  private struct UnknownSide: Hashable {
    let entity: ObjectIdentifier
    let index: Int
    let isToMany: Bool
    let description: NSEntityDescription

    init(_ link: ObjectTemplate.Link) {
      description = link.slot.destinationEntity
      entity = ObjectIdentifier(description)
      index = link.inverseIndex
      isToMany = link.slot.inverseIsToMany
    }

    static func == (left: UnknownSide, right: UnknownSide) -> Bool {
      left.entity == right.entity && left.index == right.index && left.isToMany == right.isToMany
    }

    func hash(into hasher: inout Hasher) {
      hasher.combine(entity)
      hasher.combine(index)
      hasher.combine(isToMany)
    }
  }

  /// Takes objects that are gone out of the relationships of all others.
  ///
  /// Where an object's own side is known it names who refers to it. Where it is not, as with a fault
  /// that a batch request deleted, all objects of the other side are looked at, once for all.
  func leaveRelationships(_ objects: [NSManagedObject]) {
    guard !objects.isEmpty else { return }
    var unknown: Set<UnknownSide> = []
    let gone = Set(objects.map { ObjectIdentifier($0) })
    // Each storage once: a hub may lose thousands of members at a time.
    var storages: [ObjectIdentifier: ToManyStorage] = [:]
    for object in objects { leaveKnown(object, gone, &storages, &unknown) }
    for storage in storages.values { storage.forget(gone) }
    guard !unknown.isEmpty else { return }
    let references = Set(objects.map(\.rowReference))
    for other in registry.objects + inserted.objects {
      for side in unknown where other.template.layout.isMemberOrSub(of: side.description) {
        if side.isToMany {
          other.toManyStorage(ifTouched: side.index)?.forget(gone)
        } else {
          other.dropToOne(at: side.index, where: gone, references)
        }
      }
    }
  }

  /// Takes an object out of the to-ones that are known to lead to it, and notes the to-manys.
  private func leaveKnown(
    _ object: NSManagedObject,
    _ gone: Set<ObjectIdentifier>,
    _ storages: inout [ObjectIdentifier: ToManyStorage],
    _ unknown: inout Set<UnknownSide>
  ) {
    func leave(_ other: NSManagedObject, _ link: ObjectTemplate.Link) {
      // What goes too need not be left.
      if gone.contains(ObjectIdentifier(other)) { return }
      guard link.slot.inverseIsToMany else {
        return other.dropToOne(object, at: link.inverseIndex)
      }
      guard let storage = other.toManyStorage(ifTouched: link.inverseIndex) else { return }
      storages[ObjectIdentifier(storage)] = storage
    }
    for (index, link) in object.template.toOnes.enumerated() where link.hasInverse {
      guard object.knowsToOne(at: index) else {
        unknown.insert(UnknownSide(link))
        continue
      }
      guard let other = object.registeredToOne(at: index) else { continue }
      leave(other, link)
    }
    for (index, link) in object.template.toManys.enumerated() where link.hasInverse {
      let storage = object.toManyStorage(ifTouched: index)
      for other in storage?.members.items ?? [] { leave(other, link) }
      if storage?.isLoaded != true { unknown.insert(UnknownSide(link)) }
    }
  }

  /// Has what waits to be saved point no longer at objects that are gone.
  ///
  /// References that this save does not write were changed by the context that deleted the objects.
  func nullifyReferences(to gone: [NSManagedObject]) {
    leaveRelationships(gone)
    let objects = Set(gone.map { ObjectIdentifier($0) })
    let references = Set(gone.map(\.rowReference))
    for object in inserted.objects + updated.objects where !object.state.contains(.fault) {
      for (index, link) in object.template.toOnes.enumerated() {
        guard let rowIndex = link.slot.rowIndex, object.changed.contains(rowIndex) else { continue }
        let destination = object.toOneObjects.isEmpty ? nil : object.toOneObjects[index]
        let isGone =
          destination.map { objects.contains(ObjectIdentifier($0)) }
          ?? references.contains(object.value(at: rowIndex))
        if isGone { object.storeToOne(nil, at: index) }
      }
    }
  }
}

extension NSManagedObject {
  /// Whether the object's own values, or the row that is attached, say where a to-one leads.
  final func knowsToOne(at index: Int) -> Bool {
    if !toOneObjects.isEmpty, toOneObjects[index] != nil { return true }
    return !state.contains(.fault) || snapshot != nil
  }

  /// A destination is gone; its identity in the row goes with it.
  final func dropToOne(_ object: NSManagedObject, at index: Int) {
    dropToOne(at: index, where: [ObjectIdentifier(object)], [object.rowReference])
  }

  final func dropToOne(
    at index: Int,
    where gone: Set<ObjectIdentifier>,
    _ references: Set<RowValue>
  ) {
    if !toOneObjects.isEmpty, let object = toOneObjects[index],
      gone.contains(ObjectIdentifier(object))
    {
      toOneObjects[index] = nil
    }
    guard !state.contains(.fault), let rowIndex = template.toOnes[index].slot.rowIndex,
      references.contains(value(at: rowIndex))
    else { return }
    // Set to the value that it had is no change: what the store has instead is taken.
    if let snapshot, isUnchanged(rowIndex, in: snapshot) { changed.remove(rowIndex) }
    values[rowIndex] = .null
  }
}
