/// The properties that the metadata of records and of edges share while a change is sent.
package protocol ChangeMetadata {
  var name: String { get }
  /// Why the server refused it; nil if it did not.
  var parked: String? { get set }

  /// Makes the sent changes pending again, because the batch failed.
  mutating func requeue()
  func save(in metadata: MirrorMetadata) throws
}
