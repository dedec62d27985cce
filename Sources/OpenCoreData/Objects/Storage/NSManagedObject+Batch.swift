import Foundation

extension ObjectTemplate {
  /// An object without a context, for the handler of a batch insertion.
  func makeBatchObject() -> NSManagedObject {
    let object = type.init(_row: .temporary(self))
    object.values = defaults
    return object
  }
}

extension NSManagedObject {
  /// Discards the values that a handler set: the object is reused for the next row.
  final func resetForBatch() {
    state = []
    forgetChanges()
    if !toOneObjects.isEmpty { toOneObjects = [] }
    dropToManys()
    if objectValues != nil { objectValues = nil }
    // The values are changed in place: otherwise the array would be copied at the first value.
    let defaults = template.defaults
    ownValues.withUnsafeMutableBufferPointer { values in
      for slot in values.indices { values[slot] = defaults[slot] }
    }
    for (index, value) in template.objectDefaults { setObjectValue(value, at: index) }
  }
}
