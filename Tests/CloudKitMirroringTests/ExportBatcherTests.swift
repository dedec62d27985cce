import CloudKitMirroring
import Testing

@Suite struct ExportBatcherTests {
  typealias Item = ExportBatcher.Item<Int>

  private func items(_ groups: [(group: Int64, count: Int)], bytes: Int = 1) -> [Item] {
    var items: [Item] = []
    for (group, count) in groups {
      for _ in 0..<count { items.append(Item(id: items.count, group: group, bytes: bytes)) }
    }
    return items
  }

  @Test("One save stays in one request if it fits")
  func groupsStayTogether() {
    let batcher = ExportBatcher(limits: .init(operations: 5, bytes: 1000))
    let batch = batcher.firstBatch(of: items([(1, 3), (2, 3)]), isComplete: true)
    #expect(batch.map(\.group) == [1, 1, 1])
    let both = batcher.firstBatch(of: items([(1, 3), (2, 2)]), isComplete: true)
    #expect(both.count == 5)
  }

  @Test("A save that is too large is split, and an item that is too large is sent alone")
  func tooLarge() {
    let batcher = ExportBatcher(limits: .init(operations: 5, bytes: 10))
    #expect(batcher.firstBatch(of: items([(1, 9)]), isComplete: true).count == 5)
    #expect(batcher.firstBatch(of: items([(1, 3)], bytes: 4), isComplete: true).count == 2)
    #expect(batcher.firstBatch(of: items([(1, 3)], bytes: 11), isComplete: true).count == 1)
    #expect(batcher.firstBatch(of: [Item](), isComplete: true).isEmpty)
  }

  @Test("A group that may be incomplete waits, unless it is alone")
  func openGroups() {
    let batcher = ExportBatcher(limits: .init(operations: 5, bytes: 1000))
    #expect(batcher.firstBatch(of: items([(1, 2), (2, 2)]), isComplete: false).count == 2)
    #expect(batcher.firstBatch(of: items([(1, 4)]), isComplete: false).count == 4)
  }

  @Test("In every small case all items are sent in order, within the limits, with groups unsplit")
  func exhaustive() {
    let limits = ExportBatcher.Limits(operations: 3, bytes: 6)
    for first in 0...4 {
      for second in 0...4 {
        for third in 0...4 {
          for bytes in 1...3 {
            var waiting = items([(1, first), (2, second), (3, third)], bytes: bytes)
            var sent: [Int] = []
            var requests: [Int64: Int] = [:]
            while !waiting.isEmpty {
              let batch = ExportBatcher(limits: limits).firstBatch(of: waiting, isComplete: true)
              #expect(!batch.isEmpty)
              #expect(batch.count <= 3)
              #expect(batch.reduce(0) { $0 + $1.bytes } <= 6)
              for group in Set(batch.map(\.group)) { requests[group, default: 0] += 1 }
              sent += batch.map(\.id)
              waiting.removeFirst(batch.count)
            }
            #expect(sent == Array(0..<(first + second + third)))
            for (group, count) in [(Int64(1), first), (2, second), (3, third)]
            where count > 0 && count <= 3 && count * bytes <= 6 {
              #expect(requests[group] == 1)
            }
          }
        }
      }
    }
  }

  @Test("Pauses grow, stay within bounds, and are never shorter than the server asked for")
  func backoff() {
    var backoff = RetryBackoff(first: 1, longest: 8)
    let waits = (0..<6).map { _ in backoff.failed(retryAfter: nil, fraction: 0.5) }
    #expect(waits == [0.75, 1.5, 3, 6, 6, 6])
    #expect(backoff.failed(retryAfter: 100, fraction: 0) == 100)
    backoff.succeeded()
    #expect(backoff.failed(retryAfter: nil, fraction: 0) == 0.5)
  }
}
