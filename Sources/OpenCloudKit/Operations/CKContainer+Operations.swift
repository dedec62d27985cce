import Effects
import Foundation

extension CKContainer {
  /// Runs an operation.
  public func add(_ operation: CKOperation) {
    if operation.configuration.container == nil { operation.configuration.container = self }
    // A database operation without a database uses the private one.
    OperationLane.shared.add(operation)
  }

  /// Runs the body with this container, under the limits of the configuration and the group.
  @discardableResult
  public func configuredWith<R>(
    configuration: CKOperation.Configuration? = nil,
    group: CKOperationGroup? = nil,
    body: (CKContainer) async throws -> R
  ) async rethrows -> R {
    try await body(configured(configuration: configuration, group: group))
  }

  /// Runs the body with this container, under the limits of the configuration and the group.
  @discardableResult
  public func configuredWith<R>(
    configuration: CKOperation.Configuration? = nil,
    group: CKOperationGroup? = nil,
    body: (CKContainer) throws -> R
  ) rethrows -> R {
    try body(configured(configuration: configuration, group: group))
  }

  /// This container with the limits of a configuration and a group.
  package func configured(
    configuration: CKOperation.Configuration?,
    group: CKOperationGroup?
  ) -> CKContainer {
    let effective = (configuration ?? CKOperation.Configuration()).filled(from: group)
    return (effective.container ?? self).limited(to: effective.limits)
  }

  // MARK: Long-lived operations

  /// The identifiers of this process's long-lived operations that have not ended.
  public func allLongLivedOperationIDs() async throws -> [CKOperation.ID] {
    LongLivedOperations.shared.all(of: self).map(\.operationID)
  }

  /// Fetches the identifiers of this process's long-lived operations that have not ended.
  public func fetchAllLongLivedOperationIDs(
    completionHandler: @escaping @Sendable ([CKOperation.ID]?, (any Error)?) -> Void
  ) {
    effects.tasks.spawn {
      completionHandler(LongLivedOperations.shared.all(of: self).map(\.operationID), nil)
    }
  }

  /// The long-lived operation of an identifier, or nil if it has ended.
  ///
  /// **Differs from CloudKit:** it is the same object that was queued, and it is already running.
  public func longLivedOperation(for operationID: CKOperation.ID) async throws -> CKOperation? {
    LongLivedOperations.shared.all(of: self).first { $0.operationID == operationID }
  }

  /// Fetches the long-lived operation of an identifier, or nil if it has ended.
  public func fetchLongLivedOperation(
    withID operationID: CKOperation.ID,
    completionHandler: @escaping @Sendable (CKOperation?, (any Error)?) -> Void
  ) {
    effects.tasks.spawn {
      let all = LongLivedOperations.shared.all(of: self)
      completionHandler(all.first { $0.operationID == operationID }, nil)
    }
  }
}

extension CKDatabase {
  /// Runs an operation on this database.
  public func add(_ operation: CKDatabaseOperation) {
    operation.database = self
    OperationLane.shared.add(operation)
  }

  /// Runs the body with this database, under the limits of the configuration and the group.
  @discardableResult
  public func configuredWith<R>(
    configuration: CKOperation.Configuration? = nil,
    group: CKOperationGroup? = nil,
    body: (CKDatabase) async throws -> R
  ) async rethrows -> R {
    try await body(configured(configuration: configuration, group: group))
  }

  /// Runs the body with this database, under the limits of the configuration and the group.
  @discardableResult
  public func configuredWith<R>(
    configuration: CKOperation.Configuration? = nil,
    group: CKOperationGroup? = nil,
    body: (CKDatabase) throws -> R
  ) rethrows -> R {
    try body(configured(configuration: configuration, group: group))
  }

  /// This database with the limits of a configuration and a group.
  package func configured(
    configuration: CKOperation.Configuration?,
    group: CKOperationGroup?
  ) -> CKDatabase {
    let effective = (configuration ?? CKOperation.Configuration()).filled(from: group)
    let limited = container.limited(to: effective.limits)
    return limited === container ? self : CKDatabase(container: limited, scope: databaseScope)
  }
}

/// The queue of operations that are added to a container or a database.
private final class OperationLane: @unchecked Sendable {
  // Unchecked: operation queues may be used from every thread.
  static let shared = OperationLane()

  private let queue = OperationQueue()

  func add(_ operation: CKOperation) {
    operation.qualityOfService = operation.effectiveConfiguration.qualityOfService
    queue.addOperation(operation)
  }
}
