import Foundation

/// The standard output: whole texts, written at once, with an error where they cannot be taken.
///
/// `FileHandle` stops the program where the other end of a pipe is closed or the disk is full, and
/// `print` drops what could not be written without a word.
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

/// Why the standard output took no more.
public struct StandardOutputError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The system's number of the error.
  public let code: Int32

  /// Whether the reader of a pipe has closed it: it has read what it wanted.
  public var isClosedPipe: Bool { code == EPIPE }

  /// A sentence without an end.
  public var description: String {
    "the standard output cannot be written: \(String(cString: strerror(code)))"
  }

  init(code: Int32) { self.code = code }
}

/// Writes bytes to a descriptor to the last one.
enum DescriptorWriter {
  /// Returns zero, or the error that ended it; a pipe whose reader takes nothing for `patience`
  /// milliseconds ends it with `EAGAIN`, a negative one waits for ever.
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
          // A pipe that does not block is full: its reader is slow.
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
