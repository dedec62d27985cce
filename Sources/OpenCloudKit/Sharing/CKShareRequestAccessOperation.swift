import Foundation

/// Requests access to shares; see `CKContainer.requestShareAccess(for:)`.
public final class CKShareRequestAccessOperation: CKOperation, @unchecked Sendable {
  // Unchecked: set before the operation is queued.

  /// The links.
  public var shareURLs: [URL]?
  /// Called with the outcome of each link.
  public var perShareAccessRequestResultBlock: ((URL, Result<Void, any Error>) -> Void)?
  /// Called at the end.
  public var shareAccessRequestResultBlock: ((Result<Void, any Error>) -> Void)?

  /// Creates an empty operation.
  public override init() {
    super.init()
  }

  /// Creates an operation.
  public convenience init(shareURLs: [URL]) {
    self.init()
    self.shareURLs = shareURLs
  }

  override func run() async {
    let urls = shareURLs ?? []
    do {
      try checkCancellation()
      let results = try await targetContainer.requestShareAccess(for: urls)
      var errors: [AnyHashable: any Error] = [:]
      for url in urls {
        guard let result = results[url] else { continue }
        if let error = result.error { errors[url] = error }
        perShareAccessRequestResultBlock?(url, result)
      }
      shareAccessRequestResultBlock?(Self.result(errors))
    } catch {
      shareAccessRequestResultBlock?(.failure(error))
    }
  }
}
