import Testing

@testable import CloudKitServer

@Suite("Cache of partitions")
struct PartitionCacheTests {
  private func key(_ number: Int64) -> PartitionKey {
    PartitionKey(
      container: "c",
      environment: .development,
      scope: .private,
      owner: "_\(number)"
    )
  }

  @Test("The cache holds as many partitions as its limit, and a further one empties it first")
  func limit() {
    let cache = PartitionCache(limit: 3)
    for number in Int64(1)...3 { cache.remember(PartitionID(rawValue: number), for: key(number)) }
    #expect((1...3).allSatisfy { cache[key($0)] == PartitionID(rawValue: $0) })
    cache.remember(PartitionID(rawValue: 4), for: key(4))
    #expect((1...3).allSatisfy { cache[key($0)] == nil })
    #expect(cache[key(4)] == PartitionID(rawValue: 4))
  }

  @Test("A forgotten partition is looked up again, and others stay")
  func forgotten() {
    let cache = PartitionCache(limit: 3)
    for number in Int64(1)...2 { cache.remember(PartitionID(rawValue: number), for: key(number)) }
    cache.forget(PartitionID(rawValue: 1))
    #expect(cache[key(1)] == nil)
    #expect(cache[key(2)] == PartitionID(rawValue: 2))
  }
}
