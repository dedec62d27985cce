/// A failure of the storage that no request caused.
///
/// Each engine makes it of its own errors, so that nothing above the engines knows their types.
package struct StorageFailure: Error, CustomStringConvertible {
  package enum Kind: Hashable, Sendable {
    /// The disk is full.
    case full
    /// Another program has the data locked.
    case locked
    /// The data is damaged, so that it has to be restored from a backup.
    case damaged
    case other
  }

  package var kind: Kind
  /// The engine's error, for the log.
  package var cause: any Error

  package var description: String { "\(cause)" }
}
