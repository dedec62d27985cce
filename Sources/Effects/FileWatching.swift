/// Tells of writes to files by other processes, without asking again and again.
public protocol FileWatching: Sendable {
  /// Calls the closure, on any thread, after each write to one of the files of a folder, until the
  /// watch is let go of.
  ///
  /// Nil where the folder cannot be watched.
  func watch(
    folder: String,
    files: Set<String>,
    _ changed: @escaping @Sendable () -> Void
  ) -> FileWatch?
}

/// A watch on files, which ends with its last reference.
public final class FileWatch: Sendable {
  private let end: @Sendable () -> Void

  /// Makes a watch with what ends it.
  public init(end: @escaping @Sendable () -> Void) {
    self.end = end
  }

  deinit {
    end()
  }
}

/// Watches nothing: for simulations, whose processes are all one.
public struct NoFileWatching: FileWatching {
  /// Creates it.
  public init() {}

  /// No watch.
  public func watch(
    folder: String,
    files: Set<String>,
    _ changed: @escaping @Sendable () -> Void
  ) -> FileWatch? {
    nil
  }
}
