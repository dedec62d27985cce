import CloudKitWebServices
import Foundation

/// One call of the admin API: `POST /admin/1/{noun}/{verb}`, with bodies and replies in JSON.
struct AdminCall: Sendable {
  var body: Data
  var bounds: JSONBounds
  /// The administrator, for the audit log.
  var by: String
  /// The address of the caller.
  var sender: SenderAddress?
  /// Whether the caller sent the operator's token, which belongs to no account.
  var isOperator = false

  func read<Body: Decodable>(_ type: Body.Type = Body.self) throws -> Body {
    let body = body.isEmpty ? Data("{}".utf8) : body
    let value = try ClientBody.decode(type, from: body, within: bounds)
    // A misspelt member that is ignored reads as success: an account would stay enabled.
    if let object = try? JSONSerialization.jsonObject(with: body),
      let unknown = UnknownMember(in: object, of: value)
    {
      throw AdministrationError(description: unknown.description)
    }
    return value
  }

  /// A reply with a result.
  func reply(_ result: some Encodable, _ trace: AuditTrace) throws -> AdminReply {
    AdminReply(try WireCoding.encode(result), trace)
  }

  /// The reply of a call without a result.
  func done(_ trace: AuditTrace) -> AdminReply { AdminReply(Data("{}".utf8), trace) }
}

/// The reply to an admin call, which does not exist without what the call left in the audit log.
struct AdminReply: Sendable {
  let body: Data

  init(_ body: Data, _ trace: AuditTrace) { self.body = body }
}

/// The requested page of a long list.
package struct AdminPage: Codable, Sendable {
  /// The last line of the previous page.
  package var after: String?
  package var limit: Int?

  package init(after: String? = nil, limit: Int? = nil) {
    self.after = after
    self.limit = limit
  }

  var size: Int { min(max(limit ?? 200, 1), 1000) }
}

/// Signing in to the admin API.
struct AdminSignIn: Decodable {
  var userName: String
  var password: String
  /// The code of the second factor, if the account has one.
  var code: String?
}

/// The reply of a sign-in.
package struct AdminSession: Codable, Hashable, Sendable {
  /// For the header `Authorization: Bearer …`.
  package var token: String
}
