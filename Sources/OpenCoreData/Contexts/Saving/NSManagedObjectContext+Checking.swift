import Foundation

extension NSManagedObjectContext {
  /// Stops the program if the context is used off its queue and the check is enabled.
  @inline(__always)
  func requireLane() {
    if isChecked { checkLane() }
  }

  @inline(never)
  private func checkLane() {
    guard concurrencyType != .confinementConcurrencyType, !lane.isCurrent else { return }
    let label = name.map { " '\($0)'" } ?? ""
    let kind = concurrencyType == .mainQueueConcurrencyType ? "main" : "private"
    preconditionFailure(
      "+[NSManagedObjectContext __Multithreading_Violation_AllThatIsLeftToUsIsHonor__]: the "
        + "\(kind)-queue context\(label) or an object of it was used off its queue. Call perform(_:) "
        + "or performAndWait(_:) of the context, and use its objects in there alone."
    )
  }
}

extension NSManagedObject {
  /// Stops the program if the object is used off its context's queue and the check is enabled.
  @inline(__always)
  final func requireLane() {
    if state.contains(.guarded) { context?.requireLane() }
  }

  /// The slow path of every access, except to a loaded object in an unchecked context.
  @inline(never)
  final func fireOrCheck() {
    requireLane()
    if state.contains(.fault), !takeAttachedRow() { fire() }
  }
}
