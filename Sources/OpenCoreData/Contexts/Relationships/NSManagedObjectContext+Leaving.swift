import Foundation

/// Removes deleted objects from the relationships in memory that refer to them.
extension NSManagedObjectContext {
  /// A side of a relationship whose objects referring to a deleted object are not known.
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

  /// Removes deleted objects from the relationships of all others.
  ///
  /// If an object's own side is loaded, it names the objects that refer to it. If not, as for a
  /// fault that a batch request deleted, all objects of the other side are searched, once for all
  /// deletions.
  func removeFromRelationships(_ objects: [NSManagedObject]) {
    guard !objects.isEmpty else { return }
    var unknown: Set<UnknownSide> = []
    let gone = Set(objects.map { ObjectIdentifier($0) })
    // Each storage once: one object may lose thousands of members at a time.
    var storages: [ObjectIdentifier: ToManyStorage] = [:]
    for object in objects { removeFromKnownOwners(object, gone, &storages, &unknown) }
    for storage in storages.values { storage.forget(gone) }
    guard !unknown.isEmpty else { return }
    let references = Set(objects.map(\.rowReference))
    for other in registry.objects + unsaved.inserted.objects {
      for side in unknown where other.template.layout.isMemberOrSub(of: side.description) {
        if side.isToMany {
          other.toManyStorage(ifTouched: side.index)?.forget(gone)
        } else {
          other.dropToOne(at: side.index, where: gone, references)
        }
      }
    }
  }

  /// Removes an object from the to-ones that are known to refer to it, and collects the to-manys.
  private func removeFromKnownOwners(
    _ object: NSManagedObject,
    _ gone: Set<ObjectIdentifier>,
    _ storages: inout [ObjectIdentifier: ToManyStorage],
    _ unknown: inout Set<UnknownSide>
  ) {
    func leave(_ other: NSManagedObject, _ link: ObjectTemplate.Link) {
      // An object that is deleted too need not be changed.
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

  /// Clears the references of pending objects to deleted objects.
  ///
  /// References that this save does not write were cleared by the context that deleted the objects.
  func nullifyReferences(to gone: [NSManagedObject]) {
    removeFromRelationships(gone)
    let objects = Set(gone.map { ObjectIdentifier($0) })
    let references = Set(gone.map(\.rowReference))
    for object in unsaved.inserted.objects + unsaved.updated.objects
    where !object.state.contains(.fault) {
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
  /// Whether the object's own values, or its attached row, have the value of a to-one.
  final func knowsToOne(at index: Int) -> Bool {
    if !toOneObjects.isEmpty, toOneObjects[index] != nil { return true }
    return !state.contains(.fault) || snapshot != nil
  }

  /// Clears a to-one whose destination was deleted, also the identifier in the row.
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
    // A relationship that was set to its stored value is not a change: the store's new value replaces it.
    if let snapshot, isUnchanged(rowIndex, in: snapshot) { changed.remove(rowIndex) }
    values[rowIndex] = .null
  }
}
