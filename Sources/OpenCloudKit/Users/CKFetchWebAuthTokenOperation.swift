import Foundation

/// Fetches the token with which web requests act as the person who is signed in.
public final class CKFetchWebAuthTokenOperation: CKDatabaseOperation, @unchecked Sendable {
  // Unchecked: set before the operation is queued.

  /// The token that names the app to the service.
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

  /// Creates an operation with nothing to do.
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
    // The service confirms the person, and may hand over a newer token while it does.
    _ = try await container.userRecordID()
    guard let token = try container.client().webAuthToken else {
      throw CKError(.notAuthenticated, "Nobody is signed in.")
    }
    return token
  }
}
