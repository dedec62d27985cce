import Foundation

/// Fetches the token with which web requests act as the signed-in user.
public final class CKFetchWebAuthTokenOperation: CKDatabaseOperation, @unchecked Sendable {
  // Unchecked: set before the operation is queued.

  /// The token that identifies the app to the service.
  public var apiToken: String?
  /// Called at the end with the token.
  public var fetchWebAuthTokenResultBlock: ((Result<String, any Error>) -> Void)?
  /// Called at the end with the token.
  @available(*, deprecated, renamed: "fetchWebAuthTokenResultBlock")
  public var fetchWebAuthTokenCompletionBlock: ((String?, (any Error)?) -> Void)? {
    get { olderBlock }
    set { olderBlock = newValue }
  }
  private var olderBlock: ((String?, (any Error)?) -> Void)?

  /// Creates an empty operation.
  public override init() {
    super.init()
  }

  /// Creates an operation.
  public convenience init(apiToken APIToken: String) {
    self.init()
    apiToken = APIToken
  }

  override func run() async {
    let result: Result<String, any Error>
    do {
      result = .success(try await token())
    } catch {
      result = .failure(error)
    }
    fetchWebAuthTokenResultBlock?(result)
    olderBlock?(try? result.get(), result.error)
  }

  private func token() async throws -> String {
    guard let apiToken, !apiToken.isEmpty else {
      throw CKError(
        .invalidArguments,
        "A web auth token is fetched for an API token, and there is none.",
        remedy: "Set the operation's apiToken before it is queued."
      )
    }
    try checkCancellation()
    let container = targetContainer
    // The service confirms the user, and its reply may contain a newer token.
    _ = try await container.userRecordID()
    guard let token = try container.client().webAuthToken else {
      throw CKError(.notAuthenticated, "No user is signed in.")
    }
    return token
  }
}
