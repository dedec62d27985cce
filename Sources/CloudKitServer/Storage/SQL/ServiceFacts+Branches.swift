import Effects
import Foundation

/// How far each partition had come when the storage left an incarnation.
///
/// What was committed up to there is in both histories: a change token of the former incarnation that
/// knows no more can be continued. Only clients that saw commits which are lost have to compare.
struct IncarnationBranch {
  /// Partitions and their counters, eight bytes each, in the order of the partitions.
  let entries: Data

  private static let width = 16

  init(entries: Data) { self.entries = entries }

  init(counters: [(partition: Int64, counter: Int64)]) {
    var entries = Data(capacity: counters.count * Self.width)
    for (partition, counter) in counters.sorted(by: { $0.partition < $1.partition }) {
      for number in [partition, counter] {
        withUnsafeBytes(of: number.bigEndian) { entries.append(contentsOf: $0) }
      }
    }
    self.entries = entries
  }

  /// The counter of a partition; nil where it was made later.
  func counter(of partition: PartitionID) -> ChangeNumber? {
    var low = 0
    var high = entries.count / Self.width
    while low < high {
      let middle = (low + high) / 2
      let found = number(at: middle * Self.width)
      if found == partition.rawValue {
        return ChangeNumber(number(at: middle * Self.width + Self.width / 2))
      }
      if found < partition.rawValue { low = middle + 1 } else { high = middle }
    }
    return nil
  }

  private func number(at offset: Int) -> Int64 {
    let start = entries.startIndex + offset
    return entries[start..<start + Self.width / 2].reduce(0) { $0 << 8 | Int64($1) }
  }
}

extension ServiceFacts {
  /// Incarnations that are remembered; clients of older ones compare.
  private static var branchLimit: Int { 8 }

  private static func name(ofBranch incarnation: String) -> String { "branch \(incarnation)" }

  /// The former incarnations that are remembered, oldest first.
  var branches: [String] {
    get throws {
      guard let names = try self["branches"] else { return [] }
      return String(decoding: names, as: UTF8.self).split(separator: "\n").map(String.init)
    }
  }

  func branch(_ incarnation: String) throws -> IncarnationBranch? {
    try self[Self.name(ofBranch: incarnation)].map(IncarnationBranch.init(entries:))
  }

  /// Begins a new incarnation that goes on where this storage is: commits after that may be lost, all
  /// before are not.
  func branchOff(_ randomness: any RandomSource) throws -> String {
    let former = try incarnation(randomness)
    let counters = try session.query("SELECT partition, counter FROM databases", []) {
      (partition: $0.int64(0), counter: $0.int64(1))
    }
    try set(Self.name(ofBranch: former), IncarnationBranch(counters: counters).entries)
    var names = try branches + [former]
    while names.count > Self.branchLimit {
      let oldest = names.removeFirst()
      try session.run(
        "DELETE FROM service WHERE name = $1",
        [.text(Self.name(ofBranch: oldest))]
      )
    }
    try set("branches", Data(names.joined(separator: "\n").utf8))
    return try beginNewIncarnation(randomness)
  }

  /// Takes over from another storage where it left its incarnations.
  func copyBranches(from other: ServiceFacts<some SQLSession>) throws {
    for name in try other.branches {
      if let branch = try other.branch(name) {
        try set(Self.name(ofBranch: name), branch.entries)
      }
    }
    if let names = try other["branches"] { try set("branches", names) }
  }
}
