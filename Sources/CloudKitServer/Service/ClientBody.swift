import CloudKitWebServices
import Foundation

/// The body of a request, as a client sent it.
package enum ClientBody {
  /// Called with each type as which a body of the current task's requests is decoded: fuzzers
  /// generate bodies from the types.
  @TaskLocal package static var observer: (@Sendable (any Decodable.Type) -> Void)?

  /// Decodes a body within bounds; the error for an invalid one names the invalid part.
  ///
  /// Values of the storage are decoded by `WireCoding` itself: if that fails, the client is not the
  /// cause, and the decoder's error goes to the log.
  static func decode<Value: Decodable>(
    _ type: Value.Type,
    from body: Data,
    within bounds: JSONBounds
  ) throws(ErrorDictionary) -> Value {
    observer?(type)
    // `JSONDecoder` says that an empty body is empty.
    if !body.isEmpty { try check(body, bounds) }
    do throws(MalformedBody) {
      return try WireCoding.decode(type, from: body)
    } catch {
      throw ErrorDictionary(.badRequest, "\(error)")
    }
  }

  private static func check(_ body: Data, _ bounds: JSONBounds) throws(ErrorDictionary) {
    let reason: String
    do throws(JSONBounds.Refusal) {
      return try bounds.check(body)
    } catch {
      switch error {
      case .malformed: throw ErrorDictionary(.badRequest, MalformedBody.noJSON)
      case .array(let name, let limit): reason = "'\(name)' has more than \(limit) elements"
      case .arrays(let name, let limit):
        reason = "the arrays '\(name)' have more than \(limit) elements together"
      case .values(let limit): reason = "the request has more than \(limit) values"
      case .marks(let limit):
        reason = "a text has more than \(limit) combining marks in a row; send it with fewer"
      case .name(let limit): reason = "a name has more than \(limit) bytes"
      }
    }
    throw ErrorDictionary(
      .badRequest,
      reason,
      extension: ErrorExtension(code: .limitExceeded)
    )
  }
}
