import CloudKitWebServices
import Foundation

/// The body of a request, as a client sent it.
package enum ClientBody {
  /// Called with each type that a body of the current task's requests is read as: fuzzers make their
  /// bodies of the types.
  @TaskLocal package static var observer: (@Sendable (any Decodable.Type) -> Void)?

  /// Reads a body; one that cannot be read is refused with the place that is wrong.
  ///
  /// What the storage holds is decoded by `WireCoding` itself: if that cannot be read, no client is at
  /// fault, and the decoder's words are for the log.
  static func decode<Value: Decodable>(
    _ type: Value.Type,
    from body: Data
  ) throws(ErrorDictionary) -> Value {
    observer?(type)
    do throws(MalformedBody) {
      return try WireCoding.decode(type, from: body)
    } catch {
      throw ErrorDictionary(.badRequest, "\(error)")
    }
  }
}
