/// Stops a debug build where invariants are broken; a release build does not evaluate them.
///
/// The sentences say what is broken, and the process ends at the caller's line before the broken state
/// is written or used further. Checks are in pairs: a context checks its changes before a save and after a merge, and
/// the server checks a batch before its commit, the partition in the transaction that wrote it, and its devices after
/// each registration and removal. The invariants of whole stores, of metadata and of contexts between two calls are
/// checked by tests alone: they read everything, and a file may have been written by an earlier version.
package func checkInvariants(
  _ broken: @autoclosure () throws -> [String],
  file: StaticString = #fileID,
  line: UInt = #line
) rethrows {
  #if DEBUG
  let broken = try broken()
  precondition(broken.isEmpty, broken.joined(separator: "; "), file: file, line: line)
  #endif
}
