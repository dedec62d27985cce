import Foundation

/// Carries a value to the lane that uses it.
struct LaneTransfer<Value>: @unchecked Sendable {
  // Sendable: created by one side and taken by the other, never used by both.
  let value: Value

  init(_ value: Value) {
    self.value = value
  }
}

extension NSManagedObjectContext {
  /// The context whose lane the calling code runs on.
  @TaskLocal static var current: NSManagedObjectContext?

  /// When an awaited block runs.
  public enum ScheduledTaskType: Sendable, Hashable {
    /// Immediately, if the caller is already on the context's queue.
    case immediate
    /// After the blocks that are already queued.
    case enqueued
  }

  /// Runs a block on the context's queue and returns its result.
  ///
  /// A block may call it again. It runs on the calling thread, unless this is a main-queue context.
  @discardableResult
  public func performAndWait<T>(_ block: () throws -> T) rethrows -> T {
    try runAndWait(block)
  }

  /// Implements `performAndWait`.
  ///
  /// On the main thread, a block of a main-queue context is a part of the current event, whose end is the end of the
  /// turn: an app that changes objects there can still begin to observe the context.
  func runAndWait<Result>(_ block: () throws -> Result) rethrows -> Result {
    let isPartOfEvent = concurrencyType == .mainQueueConcurrencyType && lane.isCurrent
    return try lane.sync(isForParent: isParentOfCurrent) {
      try run(block, endsTurn: !isPartOfEvent)
    }
  }

  /// Runs a block that a child's work needs of this context, its parent.
  ///
  /// Lanes are entered in the order child, parent. A thread that has this context's lane and waits for
  /// the child's lends it.
  func performForChild<Result>(_ block: () throws -> Result) rethrows -> Result {
    try lane.sync(isForParent: true) { try turn(block) }
  }

  /// Whether the calling code is in a turn of a context below this one.
  var isParentOfCurrent: Bool {
    var ancestor = Self.current?.parent
    while let context = ancestor {
      if context === self { return true }
      ancestor = context.parent
    }
    return false
  }

  /// Runs a block on the context's queue and suspends until it is done.
  @discardableResult
  nonisolated(nonsending) public func perform<T, Failure: Error>(
    schedule: ScheduledTaskType = .immediate,
    _ block: @escaping () throws(Failure) -> T
  ) async throws(Failure) -> T {
    let lane = lane
    if schedule == .immediate, lane.isCurrent {
      return try turn { () in Result(catching: block) }.get()
    }
    let work = LaneTransfer(block)
    let done = await withCheckedContinuation {
      (continuation: CheckedContinuation<LaneTransfer<Result<T, Failure>>, Never>) in
      lane.async {
        let result = self.turn { Result(catching: work.value) }
        continuation.resume(returning: LaneTransfer(result))
      }
    }
    return try done.value.get()
  }

  /// Runs a block as one turn: when the outermost ends, pending changes are processed.
  func turn<Result>(_ body: () throws -> Result) rethrows -> Result {
    try run(body, endsTurn: true)
  }

  private func run<Result>(
    _ body: () throws -> Result,
    endsTurn: Bool
  ) rethrows -> Result {
    if turnState.isInBlock { return try body() }
    turnState.isInBlock = true
    defer {
      if endsTurn { processPendingChanges() }
      endReading()
      sharedMembers.removeAll()
      turnState.isInBlock = false
      if hasUnprocessedChanges { scheduleTurn() }
    }
    return try Self.$current.withValue(self, operation: body)
  }

  /// Schedules the end of a turn on the run loop, because on the main thread an app changes objects
  /// without `perform`.
  func scheduleTurn() {
    guard !turnState.isInBlock, !turnState.isEndScheduled,
      concurrencyType == .mainQueueConcurrencyType, lane.isCurrent
    else { return }
    turnState.isEndScheduled = true
    lane.async { [handle] in
      guard let context = handle.object else { return }
      context.turnState.isEndScheduled = false
      // This is the end of the event: the changes of the next one are a group of their own.
      if let undoManager = context.undoManager {
        undoManager.endingGroup { context.processPendingChanges() }
      } else {
        context.processPendingChanges()
      }
    }
  }
}
