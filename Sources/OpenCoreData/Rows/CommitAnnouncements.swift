/// The commits of a save that have not been announced yet.
///
/// A save over several stores commits the later ones inside the transaction of the first. An observer
/// that were called there would find that store locked, and could wait for a thread that waits for it.
package final class CommitAnnouncements {
  private var waiting: [() -> Void] = []

  package init() {}

  /// Adds the announcement of a commit.
  func add(_ announcement: @escaping () -> Void) { waiting.append(announcement) }

  /// Makes the announcements in the order of the commits, on the calling thread, which holds no lock.
  package func send() {
    defer { waiting = [] }
    for announce in waiting { announce() }
  }
}
