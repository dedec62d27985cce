/// Stops a debug build where invariants are broken; a release build does not evaluate them.
///
/// The sentences say what is broken, and the process ends at the caller's line before the broken state
/// is written or used further.
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
