import Foundation

/// Finds out who people are.
@available(*, deprecated, message: "Use CKFetchShareParticipantsOperation")
public final class CKDiscoverUserIdentitiesOperation: CKOperation, @unchecked Sendable {
  // Unchecked: set before the operation is queued.

  /// What to find people by.
  public var userIdentityLookupInfos: [CKUserIdentity.LookupInfo] = []
  /// Called with each person who was found.
  public var userIdentityDiscoveredBlock: ((CKUserIdentity, CKUserIdentity.LookupInfo) -> Void)?
  /// Called at the end.
  public var discoverUserIdentitiesResultBlock: ((Result<Void, any Error>) -> Void)?
  /// Called at the end.
  public var discoverUserIdentitiesCompletionBlock: (((any Error)?) -> Void)?

  /// Creates an operation with nothing to do.
  public override init() {
    super.init()
  }

  /// Creates an operation.
  public convenience init(userIdentityLookupInfos: [CKUserIdentity.LookupInfo]) {
    self.init()
    self.userIdentityLookupInfos = userIdentityLookupInfos
  }

  override func run() async {
    do {
      let found = try await targetContainer.discover(userIdentityLookupInfos)
      for info in userIdentityLookupInfos {
        if let identity = found[info] { userIdentityDiscoveredBlock?(identity, info) }
      }
      discoverUserIdentitiesResultBlock?(.success(()))
      discoverUserIdentitiesCompletionBlock?(nil)
    } catch {
      discoverUserIdentitiesResultBlock?(.failure(error))
      discoverUserIdentitiesCompletionBlock?(error)
    }
  }
}
