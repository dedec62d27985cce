/// The limit on objects that may be deleted because a read of the whole zone did not return their
/// records.
///
/// A missing record is weaker evidence than a tombstone: a defect of a server or of a reader looks
/// the same.
package struct SweepGuard: Hashable, Sendable {
  /// The number that may always be deleted.
  package var floor: Int
  /// Above the floor, at most this fraction of the objects that the server once had.
  package var share: Double

  package init(floor: Int = 100, share: Double = 0.5) {
    self.floor = floor
    self.share = share
  }

  package func allows(_ missing: Int, of known: Int) -> Bool {
    missing <= floor || Double(missing) <= Double(known) * share
  }
}
