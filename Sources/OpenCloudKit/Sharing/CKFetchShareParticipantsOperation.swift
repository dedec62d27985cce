import Foundation

/// Finds users to invite to a share.
public final class CKFetchShareParticipantsOperation: CKOperation, @unchecked Sendable {
  // Unchecked: set before the operation is queued.

  /// The addresses or records to look up.
  public var userIdentityLookupInfos: [CKUserIdentity.LookupInfo]?
  /// Called with the outcome of each look-up.
  public var perShareParticipantResultBlock:
    ((CKUserIdentity.LookupInfo, Result<CKShare.Participant, any Error>) -> Void)?
  /// Called at the end.
  public var fetchShareParticipantsResultBlock: ((Result<Void, any Error>) -> Void)?

  private var olderItemBlock: ((CKShare.Participant) -> Void)?
  private var olderBlock: (((any Error)?) -> Void)?

  /// Called with each participant who was found.
  @available(*, deprecated, renamed: "perShareParticipantResultBlock")
  public var shareParticipantFetchedBlock: ((CKShare.Participant) -> Void)? {
    get { olderItemBlock }
    set { olderItemBlock = newValue }
  }

  /// Called at the end.
  @available(*, deprecated, renamed: "fetchShareParticipantsResultBlock")
  public var fetchShareParticipantsCompletionBlock: (((any Error)?) -> Void)? {
    get { olderBlock }
    set { olderBlock = newValue }
  }

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
    let infos = userIdentityLookupInfos ?? []
    do {
      try checkCancellation()
      let results = try await targetContainer.shareParticipants(for: infos)
      var errors: [AnyHashable: any Error] = [:]
      for info in infos {
        guard let result = results[info] else { continue }
        if let error = result.error { errors[info] = error }
        perShareParticipantResultBlock?(info, result)
        if let participant = try? result.get() { olderItemBlock?(participant) }
      }
      finish(Self.result(errors))
    } catch {
      finish(.failure(error))
    }
  }

  private func finish(_ result: Result<Void, any Error>) {
    fetchShareParticipantsResultBlock?(result)
    olderBlock?(result.error)
  }
}
