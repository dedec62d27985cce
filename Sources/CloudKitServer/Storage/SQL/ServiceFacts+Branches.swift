import Effects
import Foundation

/// The counters of all partitions when the storage left an incarnation.
///
/// Both histories contain the commits up to these counters: a change token of the former
/// incarnation that is not newer can be continued. Only clients that saw lost commits have to
/// compare.
struct IncarnationBranch {
  /// Partitions and their counters, eight bytes each, sorted by partition.
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

  /// The counter of a partition; nil if it was created later.
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
  /// The most incarnations that are kept, 16 bytes for each partition and incarnation: more than
  /// a year of weekly failovers.
  ///
  /// A token of an older one is treated as one of another server, whose client keeps and sends what
  /// is missing here. So a device that was away for longer than that brings deleted objects back;
  /// the opposite would remove objects that a restore has lost.
  static var branchLimit: Int { 64 }

  private static func name(ofBranch incarnation: String) -> String { "branch \(incarnation)" }

  /// The former incarnations that are kept, oldest first.
  var branches: [String] {
    get throws {
      guard let names = try self["branches"] else { return [] }
      return String(decoding: names, as: UTF8.self).split(ascii: "\n").map(String.init)
    }
  }

  func branch(_ incarnation: String) throws -> IncarnationBranch? {
    try self[Self.name(ofBranch: incarnation)].map(IncarnationBranch.init(entries:))
  }

  /// Begins a new incarnation that continues from the storage's current state: later commits of the
  /// former one may be lost, earlier ones are not.
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

  /// Copies another storage's branches.
  func copyBranches(from other: ServiceFacts<some SQLSession>) throws {
    for name in try other.branches {
      if let branch = try other.branch(name) {
        try set(Self.name(ofBranch: name), branch.entries)
      }
    }
    if let names = try other["branches"] { try set("branches", names) }
  }
}
