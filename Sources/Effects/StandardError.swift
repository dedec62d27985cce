import Foundation

/// The standard error, for diagnostics that may be lost.
///
/// `FileHandle` stops the process if a pipe has no reader, or if the file is closed; a warning is
/// not worth that.
public enum StandardError {
  /// The longest wait for the reader of a full pipe, in milliseconds: the caller may hold a lock.
  private static let patience: Int32 = 1000

  /// Writes a line, not interleaved with those of other threads; a line that can't be written is
  /// dropped.
  public static func print(_ line: String) { write(line + "\n") }

  /// Writes a text; it is dropped if it can't be written.
  public static func write(_ text: String) {
    _ = DescriptorWriter.write(Array(text.utf8), to: STDERR_FILENO, patience: patience)
  }

  /// Writes bytes; they are dropped if they can't be written.
  public static func write(_ bytes: Data) {
    _ = DescriptorWriter.write(Array(bytes), to: STDERR_FILENO, patience: patience)
  }
}
