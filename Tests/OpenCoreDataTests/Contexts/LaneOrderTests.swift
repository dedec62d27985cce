import Dispatch
import Foundation
import OpenCoreData
import Synchronization
import Testing

/// Threads that wait for each other's lanes; where a cycle of waits is not resolved, a test never ends.
@Suite("Waiting for contexts against their order")
struct LaneOrderTests {
  /// Returns from `attend` when all threads have arrived.
  private final class Meeting: Sendable {
    private let arrived = Mutex(0)
    private let begin = DispatchSemaphore(value: 0)
    private let count: Int

    init(of count: Int = 2) {
      self.count = count
    }

    func attend() {
      let isLast = arrived.withLock { arrived in
        arrived += 1
        return arrived == count
      }
      if isLast { for _ in 0..<count { begin.signal() } }
      begin.wait()
    }
  }

  /// Runs one block on a thread of its own and the other one on the main queue or on a second thread.
  private func run(
    onMainQueue: Bool,
    _ first: @escaping @Sendable () -> Void,
    _ second: @escaping @Sendable () -> Void
  ) async {
    await withTaskGroup(of: Void.self) { group in
      group.addTask {
        await withCheckedContinuation { continuation in
          Thread.detachNewThread {
            first()
            continuation.resume()
          }
        }
      }
      group.addTask {
        await withCheckedContinuation { continuation in
          let work: @Sendable () -> Void = {
            second()
            continuation.resume()
          }
          if onMainQueue {
            DispatchQueue.main.async(execute: work)
          } else {
            Thread.detachNewThread(work)
          }
        }
      }
    }
  }

  private func parent(
    onMainQueue: Bool
  ) throws -> (NSPersistentContainer, NSManagedObjectContext) {
    let container = try ItemModel.container()
    return (container, onMainQueue ? container.viewContext : container.newBackgroundContext())
  }

  private static var request: NSFetchRequest<NSManagedObject> {
    NSFetchRequest<NSManagedObject>(entityName: "Item")
  }

  @Test(
    "A child saves into its parent while a block of the parent waits for the child",
    arguments: [true, false]
  )
  func saving(onMainQueue: Bool) async throws {
    let (container, parent) = try parent(onMainQueue: onMainQueue)
    let child = parent.child()
    let meeting = Meeting()
    let counts = Mutex<[Int]>([])
    await run(onMainQueue: onMainQueue) {
      child.performAndWait {
        meeting.attend()
        ItemModel.insert(code: "a", into: child)
        do { try child.save() } catch { Issue.record(error) }
      }
    } _: {
      parent.performAndWait {
        meeting.attend()
        let count = child.performAndWait { () -> Int in
          (try? child.count(for: Self.request)) ?? -1
        }
        counts.withLock { $0.append(count) }
      }
    }
    // The child's block was first: its save was complete when the parent's block got its turn.
    #expect(counts.withLock { $0 } == [1])
    withExtendedLifetime(container) {}
  }

  @Test(
    "A child that merges automatically reads its parent while the main thread waits for the child"
  )
  func merging() async throws {
    let (container, view) = try parent(onMainQueue: true)
    let child = view.child()
    child.automaticallyMergesChangesFromParent = true
    let writer = container.newBackgroundContext()
    try await writer.perform {
      for number in 0..<20 { ItemModel.insert(code: "\(number)", into: writer) }
      try writer.save()
    }
    // As in an app: the save of the main queue's context has the child merge, and a block of the child
    // is awaited at once.
    for round in 0..<50 {
      await run(onMainQueue: true) {
        child.performAndWait {
          let items = (try? child.fetch(Self.request)) ?? []
          for item in items { _ = item.value(forKey: "code") }
        }
      } _: {
        let items = (try? view.fetch(Self.request)) ?? []
        for item in items { item.setValue(round, forKey: "count") }
        do { try view.save() } catch { Issue.record(error) }
        child.performAndWait {}
      }
    }
    let counts = try await child.perform {
      try child.fetch(Self.request).map { $0.value(forKey: "count") as? Int }
    }
    #expect(Set(counts) == [49])
  }

  @Test(
    "The main thread waits for a grandchild that waits for a child that reads the main queue's context"
  )
  func threeLevels() async throws {
    let (container, view) = try parent(onMainQueue: true)
    let child = view.child()
    let grandchild = child.child()
    let meeting = Meeting()
    let found = Mutex<[Int]>([])
    let inner = DispatchSemaphore(value: 0)
    await run(onMainQueue: true) {
      child.performAndWait {
        Thread.detachNewThread {
          grandchild.performAndWait {
            inner.signal()
            let count = child.performAndWait { () -> Int in
              (try? child.count(for: Self.request)) ?? -1
            }
            found.withLock { $0.append(count) }
          }
        }
        inner.wait()
        meeting.attend()
        found.withLock { $0.append((try? child.count(for: Self.request)) ?? -1) }
      }
    } _: {
      meeting.attend()
      grandchild.performAndWait { found.withLock { $0.append(7) } }
    }
    #expect(found.withLock { $0 } == [0, 0, 7])
    withExtendedLifetime(container) {}
  }

  @Test(
    "Contexts of which none is above another wait for each other in a ring, and all blocks run",
    arguments: [2, 3]
  )
  func siblings(count: Int) async throws {
    let (container, _) = try parent(onMainQueue: false)
    let contexts = (0..<count).map { number in
      let context = container.newBackgroundContext()
      context.name = "sibling \(number)"
      return context
    }
    let meeting = Meeting(of: count)
    await withTaskGroup(of: Void.self) { group in
      for number in 0..<count {
        let (own, next) = (contexts[number], contexts[(number + 1) % count])
        group.addTask {
          await withCheckedContinuation { continuation in
            Thread.detachNewThread {
              own.performAndWait {
                meeting.attend()
                ItemModel.insert(code: "own \(number)", into: own)
                next.performAndWait { _ = ItemModel.insert(code: "next \(number)", into: next) }
                do { try own.save() } catch { Issue.record(error) }
              }
              continuation.resume()
            }
          }
        }
      }
    }
    for context in contexts {
      try await context.perform { if context.hasChanges { try context.save() } }
    }
    let reader = container.newBackgroundContext()
    let codes = try await reader.perform {
      try reader.fetch(Self.request).compactMap { $0.value(forKey: "code") as? String }
    }
    let expected = (0..<count).flatMap { ["own \($0)", "next \($0)"] }
    #expect(codes.sorted() == expected.sorted())
  }

  @Test("A block for the parent may use the child whose block waits for it")
  func back() async throws {
    let (container, view) = try parent(onMainQueue: true)
    let child = view.child()
    let count = await withCheckedContinuation { (continuation: CheckedContinuation<Int, Never>) in
      Thread.detachNewThread {
        let count = child.performAndWait { () -> Int in
          ItemModel.insert(code: "a", into: child)
          return view.performAndWait { () -> Int in
            child.performAndWait { () -> Int in (try? child.count(for: Self.request)) ?? -1 }
          }
        }
        continuation.resume(returning: count)
      }
    }
    #expect(count == 1)
    withExtendedLifetime(container) {}
  }
}
