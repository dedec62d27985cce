import Foundation

/// Fetches the metadata of the shares that links identify.
public final class CKFetchShareMetadataOperation: CKOperation, @unchecked Sendable {
  // Unchecked: set before the operation is queued.

  /// The links.
  public var shareURLs: [URL]?
  /// Whether the root records of the shares are fetched too.
  public var shouldFetchRootRecord = false
  /// The keys of the root records to fetch, or nil for all.
  public var rootRecordDesiredKeys: [CKRecord.FieldKey]?
  /// Called with the outcome of each link.
  public var perShareMetadataResultBlock: ((URL, Result<CKShare.Metadata, any Error>) -> Void)?
  /// Called at the end.
  public var fetchShareMetadataResultBlock: ((Result<Void, any Error>) -> Void)?

  private var olderItemBlock: ((URL, CKShare.Metadata?, (any Error)?) -> Void)?
  private var olderBlock: (((any Error)?) -> Void)?

  /// Called with the outcome of each link.
  @available(*, deprecated, renamed: "perShareMetadataResultBlock")
  public var perShareMetadataBlock: ((URL, CKShare.Metadata?, (any Error)?) -> Void)? {
    get { olderItemBlock }
    set { olderItemBlock = newValue }
  }

  /// Called at the end.
  @available(*, deprecated, renamed: "fetchShareMetadataResultBlock")
  public var fetchShareMetadataCompletionBlock: (((any Error)?) -> Void)? {
    get { olderBlock }
    set { olderBlock = newValue }
  }

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
      let results = try await targetContainer.shareMetadatas(
        for: urls,
        fetchesRoot: shouldFetchRootRecord,
        rootKeys: rootRecordDesiredKeys
      )
      var errors: [AnyHashable: any Error] = [:]
      for url in urls {
        guard let result = results[url] else { continue }
        if let error = result.error { errors[url] = error }
        perShareMetadataResultBlock?(url, result.mapError { $0 as any Error })
        olderItemBlock?(url, try? result.get(), result.error)
      }
      finish(Self.result(errors))
    } catch {
      finish(.failure(error))
    }
  }

  private func finish(_ result: Result<Void, any Error>) {
    fetchShareMetadataResultBlock?(result)
    olderBlock?(result.error)
  }
}
