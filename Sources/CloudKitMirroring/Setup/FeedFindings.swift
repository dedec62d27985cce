/// What exports found about records, until the feed shows what it means.
struct FeedFindings {
  /// Records that the server lacked at the last export.
  private var vanished: Set<String> = []
  /// Records of which the server had an older copy than the last agreed one.
  private var outdated: Set<String> = []
  /// The outdated records for which the feed has been read since.
  private(set) var confirmed: Set<String> = []
  /// Whether a conflict was merged since the feed was last read to its end: its one-to-one relationships are
  /// settled there.
  private var settlesOneToOnes = false

  mutating func noteVanished(_ names: [String]) { vanished.formUnion(names) }
  mutating func noteOutdated(_ names: [String]) { outdated.formUnion(names) }

  /// Notes that one-to-one relationships are to be settled at the end of the feed.
  mutating func noteOneToOnes() { settlesOneToOnes = true }

  /// Returns whether a page settles one-to-one relationships; the last one of the feed does it for all.
  mutating func takeOneToOnes(isLast: Bool) -> Bool {
    defer { if isLast { settlesOneToOnes = false } }
    return settlesOneToOnes
  }

  /// Notes that the feed was read to its end.
  mutating func noteReading() {
    confirmed = outdated
    outdated = []
  }

  /// Notes that an export has merged the conflicts with confirmed records.
  mutating func noteExport() { confirmed = [] }

  mutating func takeVanished() -> Set<String> {
    defer { vanished = [] }
    return vanished
  }
}
