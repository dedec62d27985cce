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
    for object in objects { leaveKnown(object, &unknown) }
    guard !unknown.isEmpty else { return }
    let gone = Set(objects.map { ObjectIdentifier($0) })
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

  private func leaveKnown(_ object: NSManagedObject, _ unknown: inout Set<UnknownSide>) {
    for (index, link) in object.template.toOnes.enumerated() where link.hasInverse {
      guard object.knowsToOne(at: index) else {
        unknown.insert(UnknownSide(link))
        continue
      }
      guard let other = object.registeredToOne(at: index) else { continue }
      leave(object, other, link)
    }
    for (index, link) in object.template.toManys.enumerated() where link.hasInverse {
      let storage = object.toManyStorage(ifTouched: index)
      for other in storage?.members.items ?? [] { leave(object, other, link) }
      if storage?.isLoaded != true { unknown.insert(UnknownSide(link)) }
    }
  }

  private func leave(
    _ object: NSManagedObject,
    _ other: NSManagedObject,
    _ link: ObjectTemplate.Link
  ) {
    if link.slot.inverseIsToMany {
      other.toManyStorage(ifTouched: link.inverseIndex)?.forget(object)
    } else {
      other.dropToOne(object, at: link.inverseIndex)
    }
  }

  /// Has what waits to be saved point no longer at objects that are gone.
  ///
  /// Whoever pointed at them did so here: the context that deleted them has changed all others.
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
    values[rowIndex] = .null
  }
}
