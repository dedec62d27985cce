/// The destinations of a to-many relationship for many sources: one list of references, with the
/// range of each source.
package struct DestinationLists {
  package private(set) var references: [RowReference] = []
  /// The rows of the references, if they were fetched with them.
  package private(set) var rows: [Row?] = []
  /// The range of each source, by its index; empty if it has no destinations.
  private var parts: [Range<Int32>]

  package init(sourceCount: Int) {
    parts = Array(repeating: 0..<0, count: sourceCount)
    references.reserveCapacity(sourceCount)
  }

  /// The destinations of the source at an index.
  @inline(__always)
  package func destinations(at place: Int) -> ArraySlice<RowReference> {
    references[Int(parts[place].lowerBound)..<Int(parts[place].upperBound)]
  }

  /// The range of the source at an index.
  @inline(__always)
  package func part(at place: Int) -> Range<Int> {
    Int(parts[place].lowerBound)..<Int(parts[place].upperBound)
  }

  /// Whether all references have rows.
  @inline(__always)
  package var hasRows: Bool { !rows.isEmpty && rows.count == references.count }

  /// Moves a row out of the lists, which costs less than a copy.
  @inline(__always)
  mutating func takeRow(at position: Int) -> Row? { rows[position].take() }

  /// Appends the destinations of one source.
  package mutating func append(_ destinations: some Sequence<RowReference>, at place: Int) {
    let start = references.count
    references.append(contentsOf: destinations)
    note(from: start, at: place)
  }

  @inline(__always)
  mutating func append(_ destination: RowReference) {
    references.append(destination)
  }

  @inline(__always)
  mutating func append(_ destination: Row) {
    references.append(destination.reference)
    rows.append(destination)
  }

  /// Assigns the references appended since `start` to a source.
  @inline(__always)
  mutating func note(from start: Int, at place: Int) {
    if start < references.count { parts[place] = Int32(start)..<Int32(references.count) }
  }

  /// Assigns a repeated source the same destinations.
  mutating func copy(from place: Int, to other: Int) {
    parts[other] = parts[place]
  }
}

/// References sorted by key, a part for each entity, with their original indices.
struct SortedReferences {
  struct Part {
    let number: Int32
    let keys: [Int64]
    /// Nil if the references were already sorted.
    let places: [Int]?

    /// The original index of the key at an index.
    @inline(__always)
    func place(_ index: Int) -> Int { places.map { $0[index] } ?? index }
  }

  let parts: [Part]

  init(_ references: [RowReference]) {
    guard let first = references.first else {
      parts = []
      return
    }
    var isSorted = true
    var last = first
    for reference in references {
      if reference.entityNumber != first.entityNumber || reference.key < last.key {
        isSorted = false
        break
      }
      last = reference
    }
    if isSorted {
      parts = [Part(number: first.entityNumber, keys: references.map(\.key), places: nil)]
      return
    }
    let sorted = references.indices.sorted {
      let (left, right) = (references[$0], references[$1])
      return (left.entityNumber, left.key, $0) < (right.entityNumber, right.key, $1)
    }
    var parts: [Part] = []
    var start = 0
    while start < sorted.count {
      let number = references[sorted[start]].entityNumber
      var end = start
      while end < sorted.count, references[sorted[end]].entityNumber == number { end += 1 }
      let places = Array(sorted[start..<end])
      parts.append(Part(number: number, keys: places.map { references[$0].key }, places: places))
      start = end
    }
    self.parts = parts
  }
}
