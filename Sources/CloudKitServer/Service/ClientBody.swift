import CloudKitWebServices
import Foundation

/// The body of a request, as a client sent it.
package enum ClientBody {
  /// Called with each type as which a body of the current task's requests is decoded: fuzzers
  /// generate bodies from the types.
  @TaskLocal package static var observer: (@Sendable (any Decodable.Type) -> Void)?

  /// Decodes a body; the error for an invalid one names the invalid part.
  ///
  /// Values of the storage are decoded by `WireCoding` itself: if that fails, the client is not the
  /// cause, and the decoder's error goes to the log.
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
