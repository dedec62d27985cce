/// Notifies of writes to files by other processes, without polling.
public protocol FileWatching: Sendable {
  /// Calls the closure, on any thread, after each write to one of the files in a folder, until the
  /// returned watch is released.
  ///
  /// Returns nil if the folder can't be watched.
  func watch(
    folder: String,
    files: Set<String>,
    _ changed: @escaping @Sendable () -> Void
  ) -> FileWatch?
}

/// A watch on files, which ends when its last reference is released.
public final class FileWatch: Sendable {
  private let end: @Sendable () -> Void

  /// Creates a watch with the closure that ends it.
  public init(end: @escaping @Sendable () -> Void) {
    self.end = end
  }

  deinit {
    end()
  }
}

/// Watches nothing: for simulations, which have a single process.
public struct NoFileWatching: FileWatching {
  /// Creates the watcher.
  public init() {}

  /// Returns nil: nothing is watched.
  public func watch(
    folder: String,
    files: Set<String>,
    _ changed: @escaping @Sendable () -> Void
  ) -> FileWatch? {
    nil
  }
}
