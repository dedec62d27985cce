import Effects
import Foundation
import Synchronization

/// A request that can be queued, depended on and cancelled.
///
/// Its blocks are called one after another, on no particular thread.
open class CKOperation: Operation, @unchecked Sendable {
  // Unchecked: what changes while the operation runs is inside `progress`; the rest is set before
  // it is queued, as the documentation of CloudKit's operations asks.

  /// The identifier of an operation.
  public typealias ID = String

  /// How an operation is carried out.
  public final class Configuration: NSObject, @unchecked Sendable {
    // Unchecked: set before the operation is queued.

    /// The container of an operation that has no database.
    public var container: CKContainer?
    /// How important the operation is; the service treats all alike.
    public var qualityOfService: QualityOfService = .default
    /// Whether the operation may use a metered connection.
    public var allowsCellularAccess = true
    /// The longest wait for a reply in seconds; the transport's own limit holds too.
    public var timeoutIntervalForRequest: TimeInterval = 60
    /// The longest that the whole operation may take, in seconds.
    public var timeoutIntervalForResource: TimeInterval = 7 * 24 * 60 * 60

    /// Creates the default configuration.
    public override init() {
      super.init()
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
  }

  private let progress = Mutex(Progress())

  /// The operation's identifier.
  public let operationID: CKOperation.ID
  /// How the operation is carried out.
  open var configuration = Configuration()

  /// Creates an operation.
  public override init() {
    operationID = ProcessEffects.current.uuid().uuidString
    super.init()
  }

  /// What the operation does; it tells its blocks of the outcome.
  func run() async {}

  /// Where the operation's concurrent work starts.
  var effects: Effects { ProcessEffects.current }

  /// Whether the operation goes on after `start()` returns: yes.
  open override var isAsynchronous: Bool { true }
  /// Whether the operation runs.
  open override var isExecuting: Bool { progress.withLock { $0.phase == .executing } }
  /// Whether the operation has ended.
  open override var isFinished: Bool { progress.withLock { $0.phase == .finished } }

  /// Starts the operation.
  open override func start() {
    willChangeValue(for: \.isExecuting)
    progress.withLock { $0.phase = .executing }
    didChangeValue(for: \.isExecuting)
    let task = effects.tasks.spawn {
      await self.run()
      self.finish()
    }
    let isCancelled = progress.withLock { progress in
      progress.task = task
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
    willChangeValue(for: \.isExecuting)
    willChangeValue(for: \.isFinished)
    progress.withLock { progress in
      progress.phase = .finished
      progress.task = nil
    }
    didChangeValue(for: \.isExecuting)
    didChangeValue(for: \.isFinished)
  }
}

/// An operation on a database.
open class CKDatabaseOperation: CKOperation, @unchecked Sendable {
  // Unchecked: set before the operation is queued.

  /// The database, or nothing for the private one of the default container.
  open var database: CKDatabase?

  var target: CKDatabase {
    database ?? (configuration.container ?? CKContainer.default()).privateCloudDatabase
  }

  override var effects: Effects { target.effects }

  /// The result of a batch: a partial failure where items failed.
  static func result(_ errors: [AnyHashable: any Error]) -> Result<Void, any Error> {
    errors.isEmpty ? .success(()) : .failure(CKError.partialFailure(errors))
  }
}

extension CKContainer {
  /// Runs an operation.
  public func add(_ operation: CKOperation) {
    if operation.configuration.container == nil { operation.configuration.container = self }
    OperationLane.shared.add(operation)
  }
}

extension CKDatabase {
  /// Runs an operation on this database.
  public func add(_ operation: CKDatabaseOperation) {
    operation.database = self
    OperationLane.shared.add(operation)
  }
}

/// The queue of operations that are added to a container or a database.
private final class OperationLane: @unchecked Sendable {
  // Unchecked: operation queues may be used from every thread.
  static let shared = OperationLane()

  private let queue = OperationQueue()

  func add(_ operation: Operation) {
    queue.addOperation(operation)
  }
}
