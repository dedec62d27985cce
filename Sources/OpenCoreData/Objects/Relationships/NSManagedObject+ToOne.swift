import Foundation

extension NSManagedObject {
  /// The destination; a fault when it has not been read yet.
  final func toOne(at index: Int) -> NSManagedObject? {
    fireIfFault()
    if !toOneObjects.isEmpty, let object = toOneObjects[index] { return object }
    let link = template.toOnes[index]
    guard let rowIndex = link.slot.rowIndex,
      case .reference(let reference) = value(at: rowIndex), let context
    else { return nil }
    let object = context.object(reference, from: self)
    keepToOne(object, at: index)
    return object
  }

  /// The destination if it is in memory already.
  final func registeredToOne(at index: Int) -> NSManagedObject? {
    if !toOneObjects.isEmpty, let object = toOneObjects[index] { return object }
    // The row that is attached to a fault has the reference too.
    guard !state.contains(.fault) || snapshot != nil,
      let rowIndex = template.toOnes[index].slot.rowIndex,
      case .reference(let reference) = value(at: rowIndex), let context
    else { return nil }
    return context.registeredObject(reference, from: self)
  }

  final func toOneIdentifier(at index: Int) -> NSManagedObjectID? {
    toOne(at: index)?.objectID
  }

  final func keepToOne(_ object: NSManagedObject?, at index: Int) {
    if toOneObjects.isEmpty {
      guard object != nil else { return }
      toOneObjects = [NSManagedObject?](repeating: nil, count: template.toOnes.count)
    }
    toOneObjects[index] = object
  }

  /// Sets the destination and keeps the inverse relationship true.
  final func setToOne(_ object: NSManagedObject?, at index: Int) {
    guard isReadyForChange() else { return }
    let old = toOne(at: index)
    guard old !== object else {
      if let rowIndex = template.toOnes[index].slot.rowIndex { noteChange(at: rowIndex) }
      return
    }
    let link = template.toOnes[index]
    if let object { requireFit(object, link) }
    storeToOne(object, at: index)
    if link.hasInverse { keepInverse(from: old, to: object, link, at: index) }
  }

  /// Has the former destination forget this object, and the new one refer to it.
  final func keepInverse(
    from old: NSManagedObject?,
    to object: NSManagedObject?,
    _ link: ObjectTemplate.Link,
    at index: Int
  ) {
    if link.slot.inverseIsToMany {
      old?.inverseRemoved(self, from: link.inverseIndex)
      object?.inverseAdded(self, to: link.inverseIndex)
    } else {
      old?.storeToOne(nil, at: link.inverseIndex)
      if let object {
        if let former = object.toOne(at: link.inverseIndex), former !== self {
          former.storeToOne(nil, at: index)
        }
        object.storeToOne(self, at: link.inverseIndex)
      }
    }
  }

  /// Sets the destination on this side alone.
  final func storeToOne(_ object: NSManagedObject?, at index: Int) {
    guard isReadyForChange(), let rowIndex = template.toOnes[index].slot.rowIndex else { return }
    announceWill(.toOne(index))
    keepToOne(object, at: index)
    values[rowIndex] = object?.rowReference ?? .null
    noteChange(at: rowIndex)
    announceDid(.toOne(index))
  }

  /// Whether the object can be a destination of a relationship.
  final func fits(_ link: ObjectTemplate.Link) -> Bool {
    template.layout.entity === link.slot.destinationEntity
      || template.layout.isMemberOrSub(of: link.slot.destinationEntity)
      || template.layout.entityName == link.slot.destinationEntity.name
  }

  final func requireFit(_ object: NSManagedObject, _ link: ObjectTemplate.Link) {
    if !object.fits(link) {
      fatalError(
        "Unacceptable type of value for to-\(link.slot.isToMany ? "many" : "one") relationship: "
          + "property = \"\(link.slot.name)\"; desired type = "
          + "\(link.slot.destinationEntity.objectClassName); given type = "
          + "\(String(reflecting: Swift.type(of: object))); value = \(object)."
      )
    }
    if let context, let other = object.context, context !== other {
      fatalError(
        "Illegal attempt to establish a relationship '\(link.slot.name)' between objects in "
          + "different contexts (source = \(self) , destination = \(object))"
      )
    }
  }
}
