import Foundation
import OpenCoreData
import Synchronization
import Testing

@Suite("The order of commit announcements")
struct CommitOrderTests {
  let world: SampleStore
  let numbers = Log()

  /// The numbers of the transactions that observers were called for.
  final class Log: Sendable {
    private let numbers = Mutex<[Int64]>([])

    var all: [Int64] { numbers.withLock { $0 } }

    func note(_ commit: StoreCommit) {
      numbers.withLock { $0.append(commit.transactionNumber ?? 0) }
    }
  }

  init() throws {
    world = try SampleStore()
    world.store.observeCommits { [numbers] in numbers.note($0) }
  }

  private func changes() throws -> RowChanges {
    var changes = RowChanges()
    changes.inserted = [try world.insertion("Post", ["title": .string("x")])]
    return changes
  }

  @Test("A commit is announced after the previous one, regardless of the threads")
  func order() throws {
    let (first, second) = (CommitAnnouncements(), CommitAnnouncements())
    _ = try world.store.commit(changes(), first, before: {})
    _ = try world.store.commit(changes(), second, before: {})
    second.send()
    #expect(numbers.all.isEmpty)
    first.send()
    #expect(numbers.all == [1, 2])
  }

  @Test("A commit whose announcement is cancelled does not block later ones")
  func givenUp() throws {
    do {
      let announcements = CommitAnnouncements()
      _ = try world.store.commit(changes(), announcements, before: {})
    }
    _ = try world.store.commit(changes())
    #expect(numbers.all == [2])
  }

  @Test("An observer that saves is called for that save after it has returned")
  func savingObserver() throws {
    let isNested = Atomic(false)
    let next = try changes()
    let events = Mutex<[String]>([])
    let store = world.store
    store.observeCommits { commit in
      let number = commit.transactionNumber ?? 0
      events.withLock { $0.append("begin \(number)") }
      if !isNested.exchange(true, ordering: .relaxed) {
        #expect(throws: Never.self) { try store.commit(next) }
      }
      events.withLock { $0.append("end \(number)") }
    }
    _ = try world.store.commit(changes())
    #expect(events.withLock { $0 } == ["begin 1", "end 1", "begin 2", "end 2"])
  }
}
