/// Iteration over very many objects without counting references.
///
/// A loop over an array retains each object for its iteration, since other code could remove the
/// object meanwhile. That is two writes of memory that is often not in the cache. Here the array is
/// held for the whole loop, and it can't change, so each of its objects lives as long.
extension [NSManagedObject] {
  /// Calls a function with each object and its position.
  @inline(__always)
  func forEachUncounted(_ body: (Int, NSManagedObject) throws -> Void) rethrows {
    try forEachUncounted(in: indices, body)
  }

  /// Calls a function with each object of a range of the array, and its position.
  @inline(__always)
  func forEachUncounted(
    in part: Range<Int>,
    _ body: (Int, NSManagedObject) throws -> Void
  ) rethrows {
    precondition(part.lowerBound >= 0 && part.upperBound <= count)
    try withExtendedLifetime(self) {
      try withUnsafeBytes { bytes in
        // An object and an unmanaged reference to it are the same word.
        let objects = bytes.assumingMemoryBound(to: Unmanaged<NSManagedObject>.self)
        for place in part {
          try objects[place]._withUnsafeGuaranteedRef { try body(place, $0) }
        }
      }
    }
  }

  /// Whether all objects pass a test.
  @inline(__always)
  func allUncounted(_ test: (NSManagedObject) -> Bool) -> Bool {
    allUncounted(in: indices, test)
  }

  /// Whether all objects of a part pass a test.
  @inline(__always)
  func allUncounted(in part: Range<Int>, _ test: (NSManagedObject) -> Bool) -> Bool {
    var passed = true
    forEachUncounted(in: part) { _, object in if passed { passed = test(object) } }
    return passed
  }

  /// The objects that pass a test; most often all.
  @inline(__always)
  func filterUncounted(_ test: (NSManagedObject) -> Bool) -> [NSManagedObject] {
    allUncounted(test) ? self : filter(test)
  }

  /// The references of the objects' rows.
  var references: [RowReference] { references(in: indices) }

  /// The references of the rows of a part.
  func references(in part: Range<Int>) -> [RowReference] {
    [RowReference](unsafeUninitializedCapacity: part.count) { made, madeCount in
      forEachUncounted(in: part) { place, object in
        made.initializeElement(at: place - part.lowerBound, to: object.key.reference)
      }
      madeCount = part.count
    }
  }
}
