import Dispatch
import Foundation
import OpenCoreData
import Synchronization
import Testing

/// Calls from other threads while a context's own block runs.
@Suite("Contexts that are busy")
struct BusyLaneTests {
  private final class Flag: Sendable {
    private let value = Mutex(false)

    var isSet: Bool { value.withLock { $0 } }

    func set() { value.withLock { $0 = true } }
  }

  /// Calls a context from another thread in the middle of its block; whether the call returned in the middle of it.
  private func returnsEarly(
    _ context: NSManagedObjectContext,
    _ call: @escaping @Sendable () -> Void
  ) async -> Bool {
    let hasReturned = Flag()
    let isInside = DispatchSemaphore(value: 0)
    async let returned: Void = withCheckedContinuation { continuation in
      Thread.detachNewThread {
        isInside.wait()
        call()
        hasReturned.set()
        continuation.resume()
      }
    }
    let isEarly = await withCheckedContinuation { continuation in
      Thread.detachNewThread {
        let isEarly = context.performAndWait { () -> Bool in
          isInside.signal()
          for _ in 0..<200_000 where !hasReturned.isSet { sched_yield() }
          return hasReturned.isSet
        }
        continuation.resume(returning: isEarly)
      }
    }
    await returned
    return isEarly
  }

  @Test("A merge waits for the context's block on another thread")
  func merge() async throws {
    let container = try ItemModel.container()
    let (context, other) = (container.newBackgroundContext(), container.newBackgroundContext())
    let item = try other.performAndWait {
      let item = ItemModel.insert(code: "a", into: other)
      try other.save()
      return item.objectID
    }
    let isEarly = await returnsEarly(context) {
      context.mergeChanges(
        fromContextDidSave: Notification(
          name: .NSManagedObjectContextDidSaveObjectIDs,
          object: other,
          userInfo: [NSInsertedObjectIDsKey: Set([item])]
        )
      )
    }
    #expect(!isEarly)
  }

  @Test("A save waits for the context's block on another thread")
  func save() async throws {
    let container = try ItemModel.container()
    let context = container.newBackgroundContext()
    context.performAndWait { _ = ItemModel.insert(code: "a", into: context) }
    let isEarly = await returnsEarly(context) { try? context.save() }
    #expect(!isEarly)
    context.performAndWait { #expect(!context.hasChanges) }
  }
}
