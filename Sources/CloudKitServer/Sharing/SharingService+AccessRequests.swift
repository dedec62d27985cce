import CloudKitWebServices
import Foundation

/// `records/request-access`: a user with the link of a share requests access.
extension SharingService {
  /// The reply is always the same, whether the share exists, accepts requests, or has blocked this
  /// user: a different reply requires the right to resolve the share.
  func requestAccess(_ request: ShortGUIDsRequest, _ context: RequestContext) async throws -> Data {
    _ = try context.user()
    try check(request, context)
    rates.countRequests(request.shortGUIDs.count - 1, context)
    for value in Set(request.shortGUIDs.map(\.value)).sorted() {
      try await ask(ShortGUID(value: value), context)
    }
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
    // A request that changes nothing takes no turn of the writers.
    let partition = try await reads.run(for: context) { [self] control in
      try storage.read(control) { try requested(guid, context, $0)?.0.guid.partition }
    }
    guard let partition else { return }
    let note = try await writer.write(to: partition) {
      [self] () -> (WriteBatch?, CommitNotification?) in
      guard let (located, state) = try storage.read({ try requested(guid, context, $0) }) else {
        return (nil, nil)
      }
      // A purge finds requests by the links of their persons, which are as few as those of joined shares.
      // Too many are no reason to reveal that the share exists.
      guard try hasPlace(forLinkOf: user, to: located, context) else { return (nil, nil) }
      // A request changes nothing that participants can see.
      return try change(located, to: state, by: user, stamped: nil, context)
    }
    if let note { delivery.announce(note) }
  }

  /// The share with the caller's request; nil if nothing changes.
  private func requested(
    _ guid: ShortGUID,
    _ context: RequestContext,
    _ snapshot: any StorageSnapshot
  ) throws -> (LocatedShare, ShareState)? {
    guard let located = try find(guid, context, snapshot), let person = located.person,
      person.user != located.guid.owner
    else { return nil }
    var state = located.state
    guard state.request(person, limit: limits.requestersPerShare) else { return nil }
    var sharing = try located.share.decodedSharing() ?? RecordSharing()
    sharing.state = state
    // A full share is no reason to reveal it.
    guard (try? sharing.checkSize(limits, before: located.share.sharing?.count)) != nil else {
      return nil
    }
    return (located, state)
  }
}
