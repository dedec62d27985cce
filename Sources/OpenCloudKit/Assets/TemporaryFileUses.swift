/// Which temporary files have asset objects, and since when the others have none.
///
/// A file stays for a while after its last object: Swift releases an object after its last use, which may
/// be before the app reads the file whose URL the object gave.
package struct TemporaryFileUses: Sendable {
  /// How long a file stays without an object, in seconds: an hour.
  package static let lifetime = 3600.0

  private var counts: [String: Int] = [:]
  private var releases: [String: Double] = [:]
  /// The releases in the order of their times, also those of files that were used again.
  private var queue: [(path: String, time: Double)] = []
  /// The number of releases in the queue that were handled.
  private var handled = 0

  package init() {}

  /// Whether a file had objects and has none any more.
  package func isReleased(_ path: String) -> Bool { releases[path] != nil }

  /// Records a new object of a file.
  package mutating func begin(_ path: String) {
    counts[path, default: 0] += 1
    releases[path] = nil
  }

  /// Records that an object of a file was released.
  package mutating func end(_ path: String, at time: Double) {
    guard let count = counts[path] else { return }
    guard count == 1 else {
      counts[path] = count - 1
      return
    }
    counts[path] = nil
    releases[path] = time
    queue.append((path, time))
  }

  /// Removes and returns the files that have had no object for their lifetime.
  package mutating func takeDue(at time: Double) -> [String] {
    var due: [String] = []
    while handled < queue.count, queue[handled].time + Self.lifetime <= time {
      let release = queue[handled]
      handled += 1
      // A file that was used again has a later release, or none.
      guard releases[release.path] == release.time else { continue }
      releases[release.path] = nil
      due.append(release.path)
    }
    if handled > queue.count / 2 {
      queue.removeFirst(handled)
      handled = 0
    }
    return due
  }
}
