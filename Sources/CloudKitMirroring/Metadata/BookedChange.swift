/// What the books' entries of records and of edges have in common while a change of theirs is sent.
package protocol BookedChange {
  var name: String { get }
  /// Why the server refused it; nil where it did not.
  var parked: String? { get set }

  /// Puts what was sent back among what waits, because the batch came to nothing.
  mutating func requeue()
  func save(in books: MirrorBooks) throws
}
