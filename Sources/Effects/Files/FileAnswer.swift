/// What a look at a path found.
///
/// A look that fails has found out nothing, and throws. The type is neither an optional nor a Boolean,
/// so that `try?` cannot make "not there" of "could not look".
package enum FileAnswer: Sendable, Equatable {
  /// Nothing has the name.
  case missing
  /// A regular file with so many bytes.
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

/// What tells a file from what it was before another process wrote to it.
package struct FileVersion: Sendable, Equatable {
  let number: UInt64
  let size: Int
  let seconds: Int
  let nanoseconds: Int
}
