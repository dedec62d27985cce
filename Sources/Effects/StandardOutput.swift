import Foundation

/// The standard output: writes texts completely, or throws an error.
///
/// `FileHandle` stops the process if the reader of a pipe has closed it or the disk is full, and
/// `print` silently drops what it can't write.
public enum StandardOutput {
  /// Writes a text.
  public static func write(_ text: String) throws(StandardOutputError) {
    let code = DescriptorWriter.write(Array(text.utf8), to: STDOUT_FILENO)
    if code != 0 { throw StandardOutputError(code: code) }
  }

  /// Writes a line.
  public static func print(_ line: String) throws(StandardOutputError) {
    try write(line + "\n")
  }
}

/// The error of a write to the standard output.
public struct StandardOutputError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The system's error number.
  public let code: Int32

  /// Whether the reader has closed the pipe, since it has read enough.
  public var isClosedPipe: Bool { code == EPIPE }

  /// The error message, without a full stop.
  public var description: String {
    "the standard output cannot be written: \(String(cString: strerror(code)))"
  }

  init(code: Int32) { self.code = code }
}

/// Writes all bytes to a descriptor.
enum DescriptorWriter {
  /// Returns zero or the error number.
  ///
  /// If a pipe's reader reads nothing for `patience` milliseconds, it returns `EAGAIN`; a negative
  /// value waits forever.
  static func write(_ bytes: [UInt8], to descriptor: Int32, patience: Int32 = -1) -> Int32 {
    bytes.withUnsafeBytes { whole in
      var rest = whole[...]
      while !rest.isEmpty {
        let count = Foundation.write(
          descriptor,
          UnsafeRawBufferPointer(rebasing: rest).baseAddress,
          rest.count
        )
        if count > 0 {
          rest = rest.dropFirst(count)
          continue
        }
        let code = errno
        if code == EAGAIN {
          // A non-blocking pipe is full, since its reader is slow.
          var pipe = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
          let ready = poll(&pipe, 1, patience)
          if ready == 0 { return EAGAIN }
          if ready < 0, errno != EINTR { return errno }
        } else if code != EINTR {
          return code
        }
      }
      return 0
    }
  }
}
