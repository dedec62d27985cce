/// How many objects may be deleted because a reading of the whole zone did not meet their records.
///
/// A missing record is weaker news than a tombstone: a fault of a server or of a reader looks the same.
package struct SweepGuard: Hashable, Sendable {
  /// So many may always be deleted.
  package var floor: Int
  /// Above the floor, at most this share of the objects that the server once had.
  package var share: Double

  package init(floor: Int = 100, share: Double = 0.5) {
    self.floor = floor
    self.share = share
  }

  package func allows(_ missing: Int, of known: Int) -> Bool {
    missing <= floor || Double(missing) <= Double(known) * share
  }
}
