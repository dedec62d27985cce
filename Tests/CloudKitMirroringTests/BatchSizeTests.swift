import CloudKitMirroring
import CloudKitTesting
import Foundation
import OpenCoreData
import Testing

@Suite("How much of what is pending is read for one batch")
struct BatchSizeTests {
  @Test("A batch has files up to a limit, and the rest of the save follows")
  func files() async throws {
    let world = try await World()
    let phone = try await ScriptedDevice("phone", in: world)
    await phone.mirror.stopAndFinish()
    try phone.save { context in
      for number in 0..<5 {
        let bytes = Data(repeating: UInt8(number), count: 1_000_000)
        let attachment = context.make("Attachment", ["name": "\(number)"])
        attachment.setValue(context.make("ImageData", ["data": bytes]), forKey: "imageData")
      }
    }
    let limits = ExportBatcher.Limits(fileBytes: 1_500_000)
    var sizes: [Int64] = []
    var names: Set<String> = []
    try phone.mirror.write(MirrorAuthor.exporting) { session in
      try session.foldHistory()
      while let batch = try session.assembleBatch(limits: limits) {
        let files = batch.operations.flatMap { $0.set.values.values }.compactMap { value in
          if case .asset(let asset) = value { asset.fingerprint.size } else { nil }
        }
        sizes.append(files.reduce(0, +))
        names.formUnion(batch.operations.map(\.name))
        let outcomes = batch.operations.map { operation in
          CloudOutcome.saved(tag: operation.name, stamps: RecordStamps())
        }
        _ = try session.settle(batch, outcomes, fetched: [:])
      }
    }
    #expect(sizes.reduce(0, +) == 5_000_000)
    #expect(sizes.max() == 2_000_000)
    #expect(names.count == 10)
    try await phone.quit()
  }

  @Test("No link precedes the objects that did not fit into its batch")
  func links() async throws {
    let world = try await World()
    let phone = try await ScriptedDevice("phone", in: world)
    await phone.mirror.stopAndFinish()
    let image = Data(count: 1_000_000)
    try phone.save { context in
      for number in 0..<4 {
        context.make("Attachment", ["name": "\(number)"])
          .setValue(context.make("ImageData", ["data": image]), forKey: "imageData")
      }
      let post = context.make("Post", ["title": "a"])
      post.setValue(NSSet(object: context.make("Tag", ["name": "t"])), forKey: "tags")
    }
    try phone.save { _ = $0.make("Post", ["title": "later"]) }
    var sent: Set<String> = []
    try phone.mirror.write(MirrorAuthor.exporting) { session in
      try session.foldHistory()
      while try session.compareEdges(limit: 100) {}
      while let batch = try session.assembleBatch(limits: .init(fileBytes: 500_000)) {
        sent.formUnion(batch.operations.map(\.name))
        for operation in batch.operations where operation.isEdge {
          let edge = try #require(try session.metadata.edge(named: operation.name))
          #expect(sent.contains(edge.edge.firstRecord))
          #expect(sent.contains(edge.edge.secondRecord))
        }
        let outcomes = batch.operations.map { operation in
          CloudOutcome.saved(tag: operation.name, stamps: RecordStamps())
        }
        _ = try session.settle(batch, outcomes, fetched: [:])
      }
    }
    #expect(sent.count == 12)
    try await phone.quit()
  }

  /// Runs the body with a batch that creates two records and was not sent.
  private func withBatchOfTwo(_ body: (MirrorSession, CloudBatch) throws -> Void) async throws {
    let world = try await World()
    let phone = try await ScriptedDevice("phone", in: world)
    await phone.mirror.stopAndFinish()
    try phone.save { context in
      for title in ["a", "b"] { _ = context.make("Post", ["title": title]) }
    }
    try phone.mirror.write(MirrorAuthor.exporting) { session in
      try session.foldHistory()
      let batch = try #require(try session.assembleBatch(limits: .init()))
      try body(session, batch)
    }
    try await phone.quit()
  }

  @Test("A batch that is settled in part stays open, and then only the rest of it is settled")
  func settledInPart() async throws {
    try await withBatchOfTwo { session, batch in
      let outcomes = batch.operations.map { _ in CloudOutcome.batchFailed }
      func sequences() throws -> [Int64?] {
        try batch.operations.map { try session.metadata.record(named: $0.name)?.sequence }
      }
      let first = try session.settle(batch, outcomes, part: 0..<1, fetched: [:])
      #expect(first.requeued == 1)
      #expect(first.files.isEmpty)
      #expect(try sequences() == [nil, batch.sequence])
      #expect(try session.metadata.openBatch() != nil)
      // As after a crash between the two parts.
      let repeated = try session.settle(batch, outcomes, fetched: [:])
      #expect(repeated.requeued == 1)
      #expect(try sequences() == [nil, nil])
      #expect(try session.metadata.openBatch() == nil)
      #expect(try session.assembleBatch(limits: .init())?.operations.count == 2)
    }
  }

  @Test("A partly settled batch in doubt records the settled part as doubtful")
  func doubtInPart() async throws {
    try await withBatchOfTwo { session, batch in
      try session.abandonInDoubt(batch, part: 0..<1)
      let records = try batch.operations.map { try session.metadata.record(named: $0.name) }
      #expect(records.map { $0?.sentKind == .save } == [true, true])
      // The values that the server may have are the base of the first alone.
      #expect(records.map { $0?.base != nil } == [true, false])
    }
  }
}
