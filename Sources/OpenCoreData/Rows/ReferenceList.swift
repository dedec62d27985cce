/// References in a quarter of the memory that an array of them takes.
///
/// A fetch finds rows of few entities and with small keys, so that what they share is kept once for
/// each run of them, and the lower halves of their keys are all that is left.
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

  /// The last run that does not begin behind a position.
  private func run(of position: Int) -> Run {
    var (low, high) = (0, runs.count)
    while low + 1 < high {
      let middle = (low + high) / 2
      if runs[middle].start <= position { low = middle } else { high = middle }
    }
    return runs[low]
  }

  /// Where a reference is in a part of the list.
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
