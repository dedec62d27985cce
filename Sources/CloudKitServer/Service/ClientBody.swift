import CloudKitWebServices
import Foundation

/// The body of a request, as a client sent it.
enum ClientBody {
  /// Reads a body; one that cannot be read is refused with the place that is wrong.
  ///
  /// What the storage holds is decoded by `WireCoding` itself: if that cannot be read, no client is at
  /// fault, and the decoder's words are for the log.
  static func decode<Value: Decodable>(
    _ type: Value.Type,
    from body: Data
  ) throws(ErrorDictionary) -> Value {
    do throws(MalformedBody) {
      return try WireCoding.decode(type, from: body)
    } catch {
      throw ErrorDictionary(.badRequest, "\(error)")
    }
  }
}
