import Effects
import Foundation
import Synchronization

/// A request that can be queued, depended on and cancelled.
///
/// Its blocks are called one after another, on no particular thread; the completion block is called
/// last, and exactly once. Set all properties before the operation is queued.
open class CKOperation: Operation, @unchecked Sendable {
  // Unchecked: all state that changes while the operation runs is inside `progress`; the rest is
  // set before it is queued, as CloudKit's documentation requires.

  /// The identifier of an operation.
  public typealias ID = String

  /// How an operation runs.
  public final class Configuration: NSObject, @unchecked Sendable {
    // Unchecked: set before the operation is queued.

    /// The container of an operation that has no database.
    public var container: CKContainer?
    /// The priority of the operation; the operation queue observes it, the service does not.
    public var qualityOfService: QualityOfService = .default {
      didSet { isQualitySet = true }
    }
    /// Whether the operation may use a metered connection.
    public var allowsCellularAccess = true
    /// Whether the operation can be found by its identifier until it ends.
    ///
    /// **Differs from CloudKit:** no other process continues the operation; it ends with its
    /// process.
    public var isLongLived = false
    /// The longest wait for a reply, in seconds; the transport's own limit also applies.
    public var timeoutIntervalForRequest: TimeInterval = CallLimits.requestTime
    /// The longest that the whole operation may take, in seconds.
    public var timeoutIntervalForResource: TimeInterval = CallLimits.resourceTime

    /// Whether the quality of service was set, so that the group's is not used.
    private(set) var isQualitySet = false

    /// Creates the default configuration.
    public override init() {
      super.init()
    }

    /// A copy with the same contents.
    func duplicate() -> Configuration {
      let copy = Configuration()
      copy.container = container
      if isQualitySet { copy.qualityOfService = qualityOfService }
      copy.allowsCellularAccess = allowsCellularAccess
      copy.isLongLived = isLongLived
      copy.timeoutIntervalForRequest = timeoutIntervalForRequest
      copy.timeoutIntervalForResource = timeoutIntervalForResource
      return copy
    }

    /// The configuration with its unset values taken from another one.
    func filled(from other: Configuration) -> Configuration {
      let filled = duplicate()
      if filled.container == nil { filled.container = other.container }
      if !isQualitySet, other.isQualitySet { filled.qualityOfService = other.qualityOfService }
      filled.allowsCellularAccess = allowsCellularAccess && other.allowsCellularAccess
      filled.isLongLived = isLongLived || other.isLongLived
      if timeoutIntervalForRequest == CallLimits.requestTime {
        filled.timeoutIntervalForRequest = other.timeoutIntervalForRequest
      }
      if timeoutIntervalForResource == CallLimits.resourceTime {
        filled.timeoutIntervalForResource = other.timeoutIntervalForResource
      }
      return filled
    }

    /// The configuration with its unset values taken from its group's, if it has a group.
    func filled(from group: CKOperationGroup?) -> Configuration {
      guard let group else { return self }
      return filled(from: group.defaultConfiguration)
    }

    var limits: CallLimits {
      CallLimits(request: timeoutIntervalForRequest, resource: timeoutIntervalForResource)
    }
  }

  private enum Phase: Sendable {
    case waiting
    case executing
    case finished
  }

  private struct Progress: Sendable {
    var phase = Phase.waiting
    var task: SpawnedTask?
    var isCancelled = false
    /// The account that the operation acts for, fixed at its start.
    var account: AccountPin?
  }

  private let progress = Mutex(Progress())
  private var ownConfiguration = Configuration()

  /// The operation's identifier.
  public let operationID: CKOperation.ID
  /// The operation's group; it supplies the values that the operation's configuration leaves unset.
  open var group: CKOperationGroup?
  /// Called when a long-lived operation can be found by its identifier, before it runs.
  open var longLivedOperationWasPersistedBlock: (() -> Void)?

  // Apple's type: it can be read without unwrapping and set to nil.
  // swift-format-ignore: NeverUseImplicitlyUnwrappedOptionals
  /// The operation's configuration; setting it to nil restores the defaults.
  open var configuration: CKOperation.Configuration! {
    get { ownConfiguration }
    set { ownConfiguration = newValue ?? Configuration() }
  }

  /// Creates an operation.
  public override init() {
    operationID = ProcessEffects.current.uuid().uuidString
    super.init()
  }

  /// Performs the operation and calls its blocks with the outcome.
  func run() async {}

  private var account: AccountPin? { progress.withLock { $0.account } }

  /// The operation's configuration, completed by its group's.
  var effectiveConfiguration: Configuration {
    ownConfiguration.filled(from: group)
  }

  /// The container that the operation works on, with the operation's limits.
  var targetContainer: CKContainer {
    let configuration = effectiveConfiguration
    let container = configuration.container ?? CKContainer.default()
    return pinned(container.limited(to: configuration.limits))
  }

  /// A container pinned to the account that was signed in when the operation started.
  func pinned(_ container: CKContainer) -> CKContainer {
    account.map { container.pinned(to: $0) } ?? container
  }

  /// The effects that start the operation's concurrent work.
  var effects: Effects { (effectiveConfiguration.container?.effects) ?? ProcessEffects.current }

  /// Whether the operation continues after `start()` returns: always true.
  open override var isAsynchronous: Bool { true }
  /// Whether the operation runs.
  open override var isExecuting: Bool { progress.withLock { $0.phase == .executing } }
  /// Whether the operation has ended.
  open override var isFinished: Bool { progress.withLock { $0.phase == .finished } }

  /// Starts the operation.
  open override func start() {
    // Without a client there is no account; the first request reports the reason.
    let account = (try? targetContainer.client())?.account
    willChangeValue(for: \.isExecuting)
    let isFirst = progress.withLock { progress in
      guard progress.phase == .waiting else { return false }
      progress.phase = .executing
      progress.account = account
      return true
    }
    didChangeValue(for: \.isExecuting)
    // A second `start()` has no effect.
    guard isFirst else { return }
    if effectiveConfiguration.isLongLived {
      LongLivedOperations.shared.add(self)
      longLivedOperationWasPersistedBlock?()
    }
    let task = effects.tasks.spawn {
      await self.run()
      self.finish()
    }
    let isCancelled = progress.withLock { progress in
      if progress.phase != .finished { progress.task = task }
      return progress.isCancelled
    }
    if isCancelled { task.cancel() }
  }

  /// Cancels the operation: its blocks get `operationCancelled`, unless it has ended.
  open override func cancel() {
    super.cancel()
    let task = progress.withLock { progress in
      progress.isCancelled = true
      return progress.task
    }
    task?.cancel()
  }

  private func finish() {
    LongLivedOperations.shared.remove(self)
    willChangeValue(for: \.isExecuting)
    willChangeValue(for: \.isFinished)
    progress.withLock { progress in
      progress.phase = .finished
      progress.task = nil
    }
    didChangeValue(for: \.isExecuting)
    didChangeValue(for: \.isFinished)
  }

  /// The result of a batch: a partial failure if items failed.
  static func result(_ errors: [AnyHashable: any Error]) -> Result<Void, any Error> {
    errors.isEmpty ? .success(()) : .failure(CKError.partialFailure(errors))
  }
}

extension CKOperation {
  /// Throws if the operation was cancelled.
  func checkCancellation() throws(CKError) {
    if isCancelled || Task.isCancelled { throw CKError(transport: CancellationError()) }
  }
}

/// The operations that can be found by their identifiers until they end.
final class LongLivedOperations: Sendable {
  static let shared = LongLivedOperations()

  private let operations = Mutex<[CKOperation.ID: CKOperation]>([:])

  func add(_ operation: CKOperation) {
    operations.withLock { $0[operation.operationID] = operation }
  }

  func remove(_ operation: CKOperation) {
    operations.withLock { $0[operation.operationID] = nil }
  }

  /// The operations of a container.
  func all(of container: CKContainer) -> [CKOperation] {
    operations.withLock { Array($0.values) }
      .filter { $0.targetContainer.containerIdentifier == container.containerIdentifier }
      .sorted { $0.operationID < $1.operationID }
  }
}
