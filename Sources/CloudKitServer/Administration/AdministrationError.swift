/// A failure of an administrator's call, as a sentence.
package struct AdministrationError: Error, Hashable, Sendable, CustomStringConvertible {
  package var description: String
}
