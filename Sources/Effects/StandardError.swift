import Foundation

/// The standard error, for lines that a program can go on without.
///
/// `FileHandle` stops the program where a pipe has no reader, or where the file is closed; a warning is
/// not worth that.
public enum StandardError {
  /// Milliseconds that a line waits for the reader of a full pipe: a warning may be written while a lock
  /// is held.
  private static let patience: Int32 = 1000

  /// Writes a line, whole even where several threads write; a line that cannot be written is dropped.
  public static func print(_ line: String) { write(line + "\n") }

  /// Writes a text; one that cannot be written is dropped.
  public static func write(_ text: String) {
    _ = DescriptorWriter.write(Array(text.utf8), to: STDERR_FILENO, patience: patience)
  }

  /// Writes bytes; those that cannot be written are dropped.
  public static func write(_ bytes: Data) {
    _ = DescriptorWriter.write(Array(bytes), to: STDERR_FILENO, patience: patience)
  }
}
