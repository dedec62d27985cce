import CloudKitMirroring
import CloudKitTesting
import Foundation
import OpenCoreData
import Testing

/// Deletions that are inferred from a read of the whole zone, without a tombstone.
@Suite("Records that a read from the start did not return")
struct SweepTests {
  private func sweep(
    _ session: MirrorSession,
    generation: Int64,
    guard limits: SweepGuard = SweepGuard()
  ) throws -> ImportEffect {
    var effect = ImportEffect()
    var position = SweepPosition()
    while try session.sweepMissing(
      generation: generation,
      limit: 100,
      guard: limits,
      from: &position,
      &effect
    ) {}
    return effect
  }

  private func startRereading(_ device: ScriptedDevice) throws -> Int64 {
    try device.mirror.write(MirrorAuthor.importing) { session in
      try session.startRereading(.expired)
      return try session.metadata.zone(session.context.zone).generation
    }
  }

  @Test("A sweep that was stopped is not executed by the next read from the start")
  func stoppedSweep() async throws {
    let world = try await World()
    let phone = try await ScriptedDevice("phone", in: world)
    try phone.save { context in
      for number in 0..<4 { _ = context.make("Post", ["title": "\(number)"]) }
    }
    try await phone.sync()
    await phone.mirror.stopAndFinish()
    let first = try startRereading(phone)
    let small = SweepGuard(floor: 1, share: 0.5)
    let stopped = try phone.mirror.write(MirrorAuthor.importing) {
      try sweep($0, generation: first, guard: small)
    }
    #expect(stopped.stoppedSweep == .init(missing: 4, known: 4))
    #expect(try phone.mirror.read { try $0.pendingCount() } == 4)
    #expect(try phone.mirror.status().keptMissingCount == 4)
    // Other objects are added, so that less than half of them are missing.
    _ = try phone.mirror.write(MirrorAuthor.importing) { session in
      try session.apply(
        records: (0..<9).map { number in
          CloudRecord(
            name: "new \(number)",
            recordType: "CD_Post",
            tag: "t",
            fields: FieldBag([
              "CD_entityName": .string("Post"), "CD_title": .string("new \(number)"),
            ])
          )
        },
        generation: first + 1
      )
    }
    let second = try startRereading(phone)
    #expect(second == first + 1)
    let effect = try phone.mirror.write(MirrorAuthor.importing) {
      try sweep($0, generation: second, guard: small)
    }
    #expect(effect.deleted.isEmpty)
    #expect(try phone.titles().count == 13)
    try await phone.quit()
  }

  @Test("One step of a sweep keeps some large objects, and the next one continues after them")
  func largeObjects() async throws {
    let world = try await World()
    let phone = try await ScriptedDevice("phone", in: world)
    try phone.save { context in
      for number in 0..<20 {
        let content = String(repeating: "x", count: 1 << 20)
        _ = context.make("Post", ["title": "\(number)", "content": content])
      }
    }
    try await phone.sync()
    await phone.mirror.stopAndFinish()
    let generation = try startRereading(phone)
    var position = SweepPosition()
    for count in [16, 20] {
      try phone.mirror.write(MirrorAuthor.importing) { session in
        var effect = ImportEffect()
        let hasMore = try session.sweepMissing(
          generation: generation,
          limit: 100,
          guard: SweepGuard(),
          from: &position,
          &effect
        )
        #expect(hasMore == (count < 20))
        #expect(try session.metadata.recoveredEdits().count == count)
      }
    }
    #expect(try phone.titles().isEmpty)
    try await phone.quit()
  }

  @Test("Many missing edges between existing objects stop the sweep")
  func missingEdges() async throws {
    let world = try await World()
    let phone = try await ScriptedDevice("phone", in: world)
    try phone.save { context in
      let tag = context.make("Tag", ["name": "t"])
      for number in 0..<200 {
        context.make("Post", ["title": "\(number)"]).setValue(NSSet(object: tag), forKey: "tags")
      }
    }
    try await phone.sync()
    await phone.mirror.stopAndFinish()
    let generation = try startRereading(phone)
    try phone.mirror.write(MirrorAuthor.importing) { session in
      try session.rows.connection.run(
        "UPDATE WSMIRROR_RECORD SET GENERATION = ?",
        [.integer(generation)]
      )
      let effect = try sweep(session, generation: generation)
      #expect(effect.stoppedSweep == .init(missing: 200, known: 200))
    }
    try phone.save { context in
      let tag = try #require(try context.all("Tag").first)
      #expect((tag.value(forKey: "posts") as? NSSet)?.count == 200)
    }
    try await phone.quit()
  }

  @Test("A missing object whose children are on the server is sent again, and deletes none of them")
  func missingParent() async throws {
    let world = try await World()
    let phone = try await ScriptedDevice("phone", in: world)
    try phone.save { context in
      let post = context.make("Post", ["title": "hub"])
      for number in 0..<300 {
        context.make("Attachment", ["name": "\(number)"]).setValue(post, forKey: "post")
      }
    }
    try await phone.sync()
    await phone.mirror.stopAndFinish()
    let generation = try startRereading(phone)
    try phone.mirror.write(MirrorAuthor.importing) { session in
      try session.rows.connection.run(
        "UPDATE WSMIRROR_RECORD SET GENERATION = ? WHERE ENTITY = 'Attachment'",
        [.integer(generation)]
      )
      let effect = try sweep(session, generation: generation)
      #expect(effect.deleted.isEmpty)
      let pending = try session.metadata.pendingRecords(limit: 1000)
      #expect(pending.map(\.entityName) == ["Post"])
      #expect(pending.map(\.pending) == [.save])
    }
    try phone.save { context in
      let counts = try ["Post", "Attachment"].map { try context.all($0).count }
      #expect(counts == [1, 300])
    }
    try await phone.quit()
  }
}
