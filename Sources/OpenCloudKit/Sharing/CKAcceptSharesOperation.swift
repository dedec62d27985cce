import Foundation

/// Accepts invitations to shares.
///
/// ```swift
/// let operation = CKAcceptSharesOperation(shareMetadatas: [metadata])
/// operation.perShareResultBlock = { _, result in
///   if case .success(let share) = result { shares.append(share) }
/// }
/// operation.acceptSharesResultBlock = { result in
///   continuation.resume(with: result.map { shares.count })
/// }
/// others.add(operation)
/// ```
public final class CKAcceptSharesOperation: CKOperation, @unchecked Sendable {
  // Unchecked: set before the operation is queued.

  /// The metadata of the shares to accept.
  public var shareMetadatas: [CKShare.Metadata]?
  /// Called with the outcome of each share.
  public var perShareResultBlock: ((CKShare.Metadata, Result<CKShare, any Error>) -> Void)?
  /// Called at the end.
  public var acceptSharesResultBlock: ((Result<Void, any Error>) -> Void)?

  private var olderItemBlock: ((CKShare.Metadata, CKShare?, (any Error)?) -> Void)?
  private var olderBlock: (((any Error)?) -> Void)?

  /// Called with the outcome of each share.
  @available(*, deprecated, renamed: "perShareResultBlock")
  public var perShareCompletionBlock: ((CKShare.Metadata, CKShare?, (any Error)?) -> Void)? {
    get { olderItemBlock }
    set { olderItemBlock = newValue }
  }

  /// Called at the end.
  @available(*, deprecated, renamed: "acceptSharesResultBlock")
  public var acceptSharesCompletionBlock: (((any Error)?) -> Void)? {
    get { olderBlock }
    set { olderBlock = newValue }
  }

  /// Creates an empty operation.
  public override init() {
    super.init()
  }

  /// Creates an operation.
  public convenience init(shareMetadatas: [CKShare.Metadata]) {
    self.init()
    self.shareMetadatas = shareMetadatas
  }

  override func run() async {
    let metadatas = shareMetadatas ?? []
    do {
      try checkCancellation()
      let results = try await targetContainer.accept(metadatas)
      var errors: [AnyHashable: any Error] = [:]
      for metadata in metadatas {
        guard let result = results[metadata] else { continue }
        if let error = result.error { errors[metadata] = error }
        perShareResultBlock?(metadata, result)
        olderItemBlock?(metadata, try? result.get(), result.error)
      }
      finish(Self.result(errors))
    } catch {
      finish(.failure(error))
    }
  }

  private func finish(_ result: Result<Void, any Error>) {
    acceptSharesResultBlock?(result)
    olderBlock?(result.error)
  }
}
