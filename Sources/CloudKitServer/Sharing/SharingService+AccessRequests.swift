import CloudKitWebServices
import Foundation

/// `records/request-access`: a user with the link of a share requests access.
extension SharingService {
  /// The reply is always the same, whether the share exists, accepts requests, or has blocked this
  /// user: a different reply requires the right to resolve the share.
  func requestAccess(_ request: ShortGUIDsRequest, _ context: RequestContext) async throws -> Data {
    _ = try context.user()
    try check(request, context)
    for guid in request.shortGUIDs { try await ask(guid, context) }
    return try WireCoding.encode(
      AccessRequestsResponse(
        results: request.shortGUIDs.map {
          .success(AccessRequestReceipt(shortGUID: ShortGUID(value: $0.value)))
        }
      )
    )
  }

  private func ask(_ guid: ShortGUID, _ context: RequestContext) async throws {
    let user = try context.user().userRecordName
    let note = try await writer.write { [self] () -> (WriteBatch?, CommitNotification?) in
      guard let located = try storage.read({ try find(guid, context, $0) }),
        let person = located.person, user != located.guid.owner
      else { return (nil, nil) }
      var state = located.state
      guard state.request(person, limit: limits.requestersPerShare) else { return (nil, nil) }
      // A request changes nothing that participants can see.
      return try change(located, to: state, by: user, stamped: nil, context)
    }
    if let note { delivery.announce(note) }
  }
}
