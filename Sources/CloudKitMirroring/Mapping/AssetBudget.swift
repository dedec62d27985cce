/// Decides which values of a record move into files.
///
/// The service accepts a megabyte per record without files. Core Data limits itself to 700,000
/// bytes, counted over the whole record: fixed values first, then the others from the shortest to
/// the longest, each inline as long as it fits. So the largest values are moved first.
package struct AssetBudget: Sendable {
  /// Core Data's limit (0xAAE60).
  package static let recordLimit = 700_000

  package var limit: Int
  /// Values of at least this length are always moved.
  package var threshold: Int?

  package init(limit: Int = AssetBudget.recordLimit, threshold: Int? = nil) {
    self.limit = limit
    self.threshold = threshold
  }

  /// The keys of the values that do not fit inline.
  ///
  /// `fixedBytes` is the size of the values that cannot be moved; `lengths` are those of the
  /// others.
  package func movedOut(fixedBytes: Int, lengths: [(key: String, length: Int)]) -> Set<String> {
    var total = fixedBytes
    var moved: Set<String> = []
    let ascending = lengths.sorted { ($0.length, $0.key) < ($1.length, $1.key) }
    for (key, length) in ascending {
      if total + length <= limit, threshold.map({ length < $0 }) ?? true {
        total += length
      } else {
        moved.insert(key)
      }
    }
    return moved
  }
}
