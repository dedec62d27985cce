import CloudKitWebServices
import Crypto
import Foundation

/// The position at which the next page of a query begins.
struct QueryMarker: Codable, Hashable, Sendable {
  /// The name of the index of the walked condition, or of all records.
  var source: String?
  /// How the pages are read; nil in a marker of a former build.
  var strategy: QueryStrategy?
  /// The last returned record; nil if none of the window was returned yet.
  var position: QueryPosition?
  /// The part of the index that is sorted in memory, if it is not the whole index.
  var window: QueryWindow?

  init(position: QueryPosition?, window: QueryWindow? = nil) {
    self.position = position
    self.window = window
  }
}

/// The range of an index whose records one or several pages sort in memory.
///
/// If no index has a query's order, the query reads at most as many records as one page may, sorts
/// them and returns them page by page; then the next window follows. If all matching records fit
/// into one window, the order is the complete one.
///
/// Differs from CloudKit, which does not document the cost or the limits of such a query.
struct QueryWindow: Codable, Hashable, Sendable {
  /// For each walk of the strategy: the entry before the window; nil: from the beginning.
  var from: [QueryPosition?]
  /// For each walk: the last entry of the window; nil: as far as the budget allows.
  var through: [QueryPosition?]?

  init(from: [QueryPosition?], through: [QueryPosition?]? = nil) {
    self.from = from
    self.through = through
  }
}

extension QueryPosition {
  init(_ entry: IndexPosition) { self.init(keys: [entry.key.bytes], entry.record) }

  /// The index entry at this position.
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

/// A marker sent to a client: it is valid only for the query that it was issued for.
struct SealedMarker: Codable, Hashable, Sendable {
  var query: String
  var marker: QueryMarker
}

extension SealedMarker {
  static func seal(
    _ marker: QueryMarker,
    of request: QueryRecordsRequest,
    _ context: RequestContext,
    _ signer: Signer
  ) throws -> String {
    let sealed = SealedMarker(query: try digest(of: request, context), marker: marker)
    return try signer.seal(sealed, for: .continuation)
  }

  /// The marker of a request; nil for the first page.
  static func open(
    _ request: QueryRecordsRequest,
    _ context: RequestContext,
    _ signer: Signer
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

  /// A digest of what a query selects, without page size and requested fields.
  private static func digest(
    of request: QueryRecordsRequest,
    _ context: RequestContext
  ) throws -> String {
    let asked = QueryRecordsRequest(
      query: request.query,
      zoneID: request.zoneID ?? .defaultZone,
      zoneWide: request.zoneID == nil && request.zoneWide == true
    )
    var hash = SHA256()
    hash.update(data: try WireCoding.encode(asked))
    hash.update(
      data: Data(
        "\(context.container)/\(context.environment)/\(context.scope)/\(context.reader.encoded)"
          .utf8
      )
    )
    return Data(hash.finalize()).prefix(12).base64URL
  }
}
