import Foundation

/// Finds the identities of users.
@available(*, deprecated, message: "Use CKFetchShareParticipantsOperation")
public final class CKDiscoverUserIdentitiesOperation: CKOperation, @unchecked Sendable {
  // Unchecked: set before the operation is queued.

  /// The addresses or records to look up.
  public var userIdentityLookupInfos: [CKUserIdentity.LookupInfo] = []
  /// Called with each user who was found.
  public var userIdentityDiscoveredBlock: ((CKUserIdentity, CKUserIdentity.LookupInfo) -> Void)?
  /// Called at the end.
  public var discoverUserIdentitiesResultBlock: ((Result<Void, any Error>) -> Void)?
  /// Called at the end.
  public var discoverUserIdentitiesCompletionBlock: (((any Error)?) -> Void)?

  /// Creates an empty operation.
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
