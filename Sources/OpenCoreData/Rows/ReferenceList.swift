/// A compact list of references, a quarter of the size of an array.
///
/// A fetch finds rows of few entities with small keys, so the common parts are stored once for each
/// run of references, and only the lower halves of the keys for each one.
package struct ReferenceList: RandomAccessCollection, Sendable {
  private struct Run {
    var start: Int
    var entityNumber: Int32
    var upperKey: Int64
  }

  private var lowerKeys: [UInt32] = []
  private var runs: [Run] = []

  package init() {}

  package init(_ references: some Sequence<RowReference>) {
    for reference in references { append(reference) }
  }

  package var startIndex: Int { 0 }
  package var endIndex: Int { lowerKeys.count }

  package mutating func append(_ reference: RowReference) {
    let upperKey = reference.key >> 32
    if runs.last?.entityNumber != reference.entityNumber || runs.last?.upperKey != upperKey {
      runs.append(
        Run(start: lowerKeys.count, entityNumber: reference.entityNumber, upperKey: upperKey)
      )
    }
    lowerKeys.append(UInt32(truncatingIfNeeded: reference.key))
  }

  package subscript(position: Int) -> RowReference {
    let run = runs.count == 1 ? runs[0] : run(of: position)
    return RowReference(
      entityNumber: run.entityNumber,
      key: run.upperKey << 32 | Int64(lowerKeys[position])
    )
  }

  /// The last run that begins at or before a position.
  private func run(of position: Int) -> Run {
    var (low, high) = (0, runs.count)
    while low + 1 < high {
      let middle = (low + high) / 2
      if runs[middle].start <= position { low = middle } else { high = middle }
    }
    return runs[low]
  }

  /// The index of a reference in a range of the list.
  package func position(of reference: RowReference, in part: Range<Int>) -> Int? {
    let lowerKey = UInt32(truncatingIfNeeded: reference.key)
    var start = part.lowerBound
    while let found = lowerKeys[start..<part.upperBound].firstIndex(of: lowerKey) {
      if self[found] == reference { return found }
      start = found + 1
    }
    return nil
  }
}
