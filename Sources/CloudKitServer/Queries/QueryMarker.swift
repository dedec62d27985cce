import CloudKitWebServices
import Crypto
import Foundation

/// Where the next page of a query begins.
struct QueryMarker: Codable, Hashable, Sendable {
  /// The index whose order the pages have, where the query asks for none.
  var source: String?
  var position: QueryPosition

  init(source: String? = nil, position: QueryPosition) {
    self.source = source
    self.position = position
  }
}

/// A marker as clients carry it: good for the query that it was given out for, and nothing else.
struct SealedMarker: Codable, Hashable, Sendable {
  var query: String
  var marker: QueryMarker
}

extension CloudKitService {
  func seal(
    _ marker: QueryMarker,
    of request: QueryRecordsRequest,
    _ context: RequestContext
  ) throws -> String {
    let sealed = SealedMarker(query: try digest(of: request, context), marker: marker)
    return try signer.seal(sealed, for: .continuation)
  }

  func openMarker(
    of request: QueryRecordsRequest,
    _ context: RequestContext
  ) throws -> QueryMarker? {
    guard let text = request.continuationMarker, !text.isEmpty else { return nil }
    guard let sealed = signer.open(text, as: SealedMarker.self, for: .continuation) else {
      throw ErrorDictionary(.badRequest, "Unknown continuation marker")
    }
    guard sealed.query == (try digest(of: request, context)) else {
      throw ErrorDictionary(.badRequest, "the continuation marker belongs to another query")
    }
    return sealed.marker
  }

  /// What a query finds, told from every other; not how much of it and in which shape.
  private func digest(of request: QueryRecordsRequest, _ context: RequestContext) throws -> String {
    let asked = QueryRecordsRequest(
      query: request.query,
      zoneID: request.zoneID ?? .defaultZone,
      zoneWide: request.zoneID == nil && request.zoneWide == true
    )
    var hash = SHA256()
    hash.update(data: try WireCoding.encode(asked))
    hash.update(
      data: Data(
        "\(context.container)/\(context.environment)/\(context.scope)/\(context.reader)".utf8
      )
    )
    return Data(hash.finalize()).prefix(12).base64URL
  }
}
