/// The state of a context's current turn: what is running, and the objects that were changed.
///
/// The turns whose notifications are being posted are a property of the context itself: objects are released while
/// they end, and the deinitializer of an object may call the context, which reads this state.
struct TurnState {
  /// Whether a block of `perform` is running; its end is the end of the turn.
  var isInBlock = false
  /// Whether the end of a turn without a block is scheduled on the run loop.
  var isEndScheduled = false
  /// Whether the delete rules of the turn's deletions are being applied at its end, or for a fetch.
  var isProcessing = false
  /// Whether delete rules are being applied, at the turn's end or earlier.
  var isPropagating = false
  /// The number of objects that are in their `awakeFromInsert()`.
  var awakening = 0
  /// Above 0 while changes are not recorded as the app's, such as those in `awakeFromFetch()`.
  var untrackedDepth = 0
  /// The objects changed in this turn, in order.
  ///
  /// An object that left the context and came back is in the list twice.
  private(set) var touched: [NSManagedObject] = []

  /// Adds an object to the changed ones.
  mutating func touch(_ object: NSManagedObject) {
    touched.append(object)
  }

  /// Removes an object from the changed ones.
  mutating func forget(_ object: NSManagedObject) {
    touched.removeAll { $0 === object }
  }

  /// Returns the changed objects and begins an empty list.
  mutating func takeTouched() -> [NSManagedObject] {
    let taken = touched
    touched = []
    return taken
  }

  /// The broken invariants, a sentence each, between two calls of the app.
  func brokenInvariants() -> [String] {
    var broken: [String] = []
    if isProcessing { broken.append("a turn is being processed") }
    if isPropagating { broken.append("delete rules are being applied") }
    if awakening != 0 { broken.append("\(awakening) inserted objects are being awakened") }
    if untrackedDepth != 0 { broken.append("changes are not tracked, at depth \(untrackedDepth)") }
    return broken
  }
}
