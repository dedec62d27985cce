import CloudKitWebServices
import Foundation

/// `records/request-access`: somebody who has the link of a share asks to take part.
extension CloudKitService {
  /// Always answers the same, whether there is such a share, whether it hears requests, and whether
  /// this person is heard: the answer comes with the right to resolve it, or not at all.
  func requestAccess(_ request: ShortGUIDsRequest, _ context: RequestContext) async throws -> Data {
    _ = try context.user()
    try checkShareRequest(request, context)
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
    let note = try await write { [self] () -> (WriteBatch?, CommitNote?) in
      guard let located = try storage.read({ try find(guid, context, $0) }),
        let person = located.person, user != located.guid.owner
      else { return (nil, nil) }
      var state = located.state
      guard state.request(person, limit: limits.requestersPerShare) else { return (nil, nil) }
      // Whoever asks has touched nothing that those who take part know of.
      return try change(located, to: state, by: user, stamped: nil, context)
    }
    if let note { announce(note) }
  }
}
