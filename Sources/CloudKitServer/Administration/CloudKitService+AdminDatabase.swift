import CloudKitWebServices
import Foundation

/// The operator as the author of records, beside all accounts.
///
/// It is a user of each container whose public database it writes to, like a server-to-server key. No
/// session and no token stand for it: only calls of the admin API with the operator's token act as it.
enum OperatorIdentity {
  /// The identifier among a container's users; the IDs of accounts have no colon.
  static let account = "operator:"
}

/// A request to a public database, in the body of an administrator's call.
package struct OperatorRequest: Codable, Hashable, Sendable {
  package var container: String
  package var environment: ContainerEnvironment?
  /// Such as `records/modify`.
  package var endpoint: String
  /// The JSON of the request's body.
  package var body: String

  package init(
    container: String,
    environment: ContainerEnvironment,
    endpoint: String,
    body: String
  ) {
    self.container = container
    self.environment = environment
    self.endpoint = endpoint
    self.body = body
  }
}

/// Requests to public databases with the operator's token, as cktool's management token makes them.
extension CloudKitService {
  /// Answers a documented endpoint in a public database, with the rights of a signed-in user.
  ///
  /// The schema's roles apply, so nothing is readable or writable that no user may read or write. An
  /// administrator's session has an account, and acts as that.
  func answerOperator(_ call: AdminCall) async throws -> AdminReply {
    let asked: OperatorRequest = try call.read()
    guard call.isOperator else {
      throw ErrorDictionary(
        .accessDenied,
        "an administrator's session acts as the administrator's account (users/sign-in)"
      )
    }
    guard NameRules.isContainerName(asked.container, limits),
      try containers().contains(asked.container)
    else { throw AdministrationError(description: "There is no container \(asked.container).") }
    guard let endpoint = Endpoint(rawValue: asked.endpoint), endpoint.isOpenToKeys,
      endpoint.rules.needsDatabase
    else {
      throw AdministrationError(
        description: "\(asked.endpoint) is no endpoint of a public database for the operator."
      )
    }
    let environment = asked.environment ?? .development
    let context = RequestContext(
      container: asked.container,
      environment: environment,
      scope: .public,
      caller: .administration(
        Principal(
          account: OperatorIdentity.account,
          userRecordName: try await operatorName(
            in: asked.container,
            isReading: endpoint.rules.isRead
          )
        )
      ),
      isExtended: true,
      wantsSyncToken: false
    )
    let trace =
      endpoint.rules.isRead
      ? .unaudited(.looksUp)
      : auditLog.record(
        "record.modify",
        by: call,
        about: asked.container,
        detail: "\(endpoint.rawValue) in \(environment.rawValue)"
      )
    return AdminReply(try await answer(endpoint, Data(asked.body.utf8), context), trace)
  }

  /// The operator's record name; a read creates no user.
  private func operatorName(in container: String, isReading: Bool) async throws -> String {
    guard isReading else {
      return try await users.user(account: OperatorIdentity.account, container: container)
        .recordName
    }
    return vault.userRecordName(account: OperatorIdentity.account, container: container)
  }
}
