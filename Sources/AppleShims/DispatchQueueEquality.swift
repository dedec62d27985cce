#if !canImport(ObjectiveC)
import Dispatch

// Dispatch returns another object for the main queue and for a global one each time; their labels are
// reserved for them. Any other queue has one object.
extension DispatchQueue: @retroactive Equatable, @retroactive Hashable {
  /// Whether both are the same queue.
  public static func == (one: DispatchQueue, other: DispatchQueue) -> Bool {
    one === other || one.label == other.label && one.label.hasPrefix("com.apple.")
  }

  /// Equal for one queue.
  public func hash(into hasher: inout Hasher) { hasher.combine(label) }
}
#endif
