/// The kind of file at a path, or its absence.
///
/// A call that fails throws, since it knows nothing of the path. The type is neither an optional
/// nor a Boolean, so that `try?` cannot turn an error into "missing".
package enum FileAnswer: Sendable, Equatable {
  /// Nothing has the name.
  case missing
  /// A regular file, with its size in bytes.
  case file(size: Int)
  /// A folder.
  case folder
  /// A device, a pipe, a socket, or a symbolic link that leads nowhere.
  case other

  /// The bytes of a regular file; 0 where there is none.
  package var size: Int {
    if case .file(let size) = self { return size }
    return 0
  }
}

/// The version of a file, by which a write of another process is noticed.
package struct FileVersion: Sendable, Equatable {
  let number: UInt64
  let size: Int
  let seconds: Int
  let nanoseconds: Int
}
