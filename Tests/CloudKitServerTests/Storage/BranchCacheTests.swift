import Foundation
import Testing

@testable import CloudKitServer

@Suite("Branches of former incarnations in memory")
struct BranchCacheTests {
  private func branch(_ counter: Int64) -> IncarnationBranch {
    IncarnationBranch(counters: [(partition: 1, counter: counter)])
  }

  @Test("A branch is read once, however many tokens ask for it")
  func once() {
    let cache = BranchCache()
    var reads = 0
    for _ in 0..<200 {
      let found = cache.branch("a", in: "b") {
        reads += 1
        return branch(7)
      }
      #expect(found?.counter(of: PartitionID(rawValue: 1)) == ChangeNumber(7))
    }
    #expect(reads == 1)
  }

  @Test("An unknown incarnation is looked for each time")
  func unknown() {
    let cache = BranchCache()
    var found = cache.branch("a", in: "b") { nil }
    #expect(found == nil)
    found = cache.branch("a", in: "b") { branch(7) }
    #expect(found != nil)
  }

  @Test("Branches are read again in another incarnation")
  func otherIncarnation() {
    let cache = BranchCache()
    _ = cache.branch("a", in: "b") { branch(7) }
    let found = cache.branch("a", in: "c") { branch(8) }
    #expect(found?.counter(of: PartitionID(rawValue: 1)) == ChangeNumber(8))
  }

  @Test("A branch that is in use is kept while others come")
  func recent() {
    let cache = BranchCache()
    var reads = 0
    for number in 0..<10 {
      _ = cache.branch("\(number)", in: "now") { branch(7) }
      _ = cache.branch("used", in: "now") {
        reads += 1
        return branch(7)
      }
    }
    #expect(reads == 1)
  }

  @Test("A few branches are kept, the first ones are read again", arguments: [4, 5])
  func bounded(count: Int) {
    let cache = BranchCache()
    for number in 0..<count { _ = cache.branch("\(number)", in: "now") { branch(7) } }
    var reads = 0
    _ = cache.branch("0", in: "now") {
      reads += 1
      return branch(7)
    }
    #expect(reads == (count > 4 ? 1 : 0))
  }
}
