import CloudKitWebServices
import Foundation

/// The refusal of a query that lacks an index, with the type that the query asked for.
///
/// The server's reason names the field alone, and a query for every type has many of them.
struct MissingIndex: Error {
  var reason: String
  var recordType: String
  var container: String
  var environment: ContainerEnvironment

  /// Nil for another error.
  init?(_ error: ErrorDictionary, of recordType: String?, _ connection: DatabaseConnection) {
    guard let reason = error.reason, Self.index(reason) != nil, let recordType else { return nil }
    self.reason = reason
    self.recordType = recordType
    container = connection.container
    environment = connection.environment
  }

  /// The field and the index that a reason asks for.
  static func index(_ reason: String) -> (field: String, index: String)? {
    if reason.contains("Type is not marked indexable") { return ("recordName", "QUERYABLE") }
    guard let match = reason.firstMatch(of: /Field '(\w+)' is not marked (\w+)/) else { return nil }
    return ("\(match.output.1)", match.output.2.uppercased())
  }

  /// Production gets an index by a promotion.
  func failure(doing what: String) -> CommandFailure {
    let missing = Self.index(reason) ?? ("recordName", "QUERYABLE")
    var next =
      "watershed schema add-index --container-id \(container) --record-type \(recordType) "
      + "--field \(missing.field) --index \(missing.index)"
    if environment == .production {
      next += " && watershed schema promote --container-id \(container)"
    }
    return CommandFailure(
      ServerErrorCode.badRequest.rawValue,
      what: what,
      why: "\(recordType): \(reason)",
      next: next
    )
  }
}

extension DatabaseConnection {
  /// A page of a query; the server's busy moments are waited for.
  func page(_ request: QueryRecordsRequest) async throws -> QueryRecordsResponse {
    do {
      return try await patiently(.queryRecords, request)
    } catch let error as ErrorDictionary {
      throw MissingIndex(error, of: request.query.recordType, self) ?? error
    }
  }
}
