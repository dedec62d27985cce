import Foundation

/// The standard error, for lines that a program can go on without.
///
/// `FileHandle` stops the program where nobody reads the other end, or where the file is closed; a
/// warning is not worth that.
public enum StandardError {
  /// Writes a line, whole even where several threads write; a line that nobody can read is dropped.
  public static func print(_ line: String) {
    let bytes = Array((line + "\n").utf8)
    bytes.withUnsafeBytes { rest in
      var rest = rest[...]
      while !rest.isEmpty {
        let count = write(
          STDERR_FILENO,
          UnsafeRawBufferPointer(rebasing: rest).baseAddress,
          rest.count
        )
        if count > 0 {
          rest = rest.dropFirst(count)
        } else if count < 0, errno == EAGAIN {
          // A pipe that does not block is full: its reader is slow.
          var pipe = pollfd(fd: STDERR_FILENO, events: Int16(POLLOUT), revents: 0)
          guard poll(&pipe, 1, 1000) > 0 else { return }
        } else if errno != EINTR {
          return
        }
      }
    }
  }
}
