/// How all pages of a query are read; chosen for the first page by counting entries.
///
/// The position in a marker has a meaning only for the walk that it comes from: the entries of
/// another filter may all lie before it. Counts change between two pages, so the next page repeats
/// the choice of the first one.
struct QueryStrategy: Codable, Hashable, Sendable {
  enum Walk: String, Codable, Sendable {
    /// The order of the walked index, for a query without sort keys.
    case ofIndex
    /// The records of a condition, or of the whole type, sorted in memory.
    case sorted
    /// The index of the first sort key.
    case inOrder
    /// The index of latitudes, outward from a location.
    case outward
  }

  var walk: Walk
  /// The place of the walked condition among the plan's; nil: the index of all records.
  var condition: Int?

  /// Whether the walk is that of a condition; the others walk the index of a sort key.
  var walksCondition: Bool { walk == .ofIndex || walk == .sorted }
}
