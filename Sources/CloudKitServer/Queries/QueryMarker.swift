import CloudKitWebServices
import Crypto
import Foundation

/// Where the next page of a query begins.
struct QueryMarker: Codable, Hashable, Sendable {
  /// The index whose order the pages have, where the query asks for none.
  var source: String?
  /// The last record that was answered; nil: none of the window yet.
  var position: QueryPosition?
  /// The part of the index that is put in order, where that is not all of it.
  var window: QueryWindow?

  init(source: String? = nil, position: QueryPosition?, window: QueryWindow? = nil) {
    self.source = source
    self.position = position
    self.window = window
  }
}

/// The stretch of an index whose records one page, or several, put in order.
///
/// A query whose order no index has looks at no more records than one page may, puts those in order
/// and answers them, page by page; then comes the next stretch. Where all that the filters leave fits
/// into one stretch the order is that of the whole.
///
/// Differs from CloudKit, which does not say what such a query costs or when it gives up.
struct QueryWindow: Codable, Hashable, Sendable {
  /// For each walk of the strategy: the entry before the stretch; nil: from the beginning.
  var from: [QueryPosition?]
  /// For each walk: the last entry of the stretch; nil: as far as the budget reaches.
  var through: [QueryPosition?]?

  init(from: [QueryPosition?], through: [QueryPosition?]? = nil) {
    self.from = from
    self.through = through
  }
}

extension QueryPosition {
  init(_ entry: IndexPosition) { self.init(keys: [entry.key.bytes], entry.record) }

  /// The entry of an index that it stands for.
  var entry: IndexPosition? {
    keys.first.map { IndexPosition(key: IndexKey(bytes: $0), record: record) }
  }
}

extension IndexPosition {
  /// The order of an index: by key, then by the record's name, then by its zone.
  func precedes(_ other: IndexPosition, isDescending: Bool) -> Bool {
    let (first, second) = isDescending ? (other, self) : (self, other)
    if first.key != second.key { return first.key < second.key }
    if first.record.name != second.record.name {
      return first.record.name.utf8.lexicographicallyPrecedes(second.record.name.utf8)
    }
    return first.record.zone.rawValue < second.record.zone.rawValue
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
