import CloudKitMirroring
import CloudKitTesting
import Foundation
import OpenCoreData
import Testing
import WatershedSQLite

@Suite("What an export reads")
struct ExportCostTests {
  /// Sends everything that is pending in batches of some operations, all of which are saved.
  private func export(_ device: ScriptedDevice, operations: Int = 400) throws {
    try device.mirror.write(MirrorAuthor.exporting) { session in
      try session.foldHistory()
      while try session.compareEdges(limit: 500) {}
      while let batch = try session.assembleBatch(limits: .init(operations: operations)) {
        let outcomes = batch.operations.map { operation in
          operation.kind == .delete
            ? CloudOutcome.deleted : .saved(tag: operation.name, stamps: RecordStamps())
        }
        _ = try session.settle(batch, outcomes, fetched: [:])
      }
    }
  }

  /// The statements that a body runs in a transaction, each with the number of its rows and its text with values.
  private func statements(
    of device: ScriptedDevice,
    _ body: (MirrorSession) throws -> Void
  ) throws -> [(sql: String, rows: Int, expanded: String)] {
    var found: [(String, Int, String)] = []
    var expanded: [String] = []
    try device.mirror.write(MirrorAuthor.exporting) { session in
      var isTracing = true
      session.metadata.connection.trace { event in
        guard isTracing else { return }
        switch event {
        case .began(_, let text): expanded.append(text() ?? "")
        case .ended(let sql, _, let rows): found.append((sql, rows, expanded.popLast() ?? ""))
        }
      }
      try body(session)
      isTracing = false
    }
    return found
  }

  /// A device that is not connected, with an attachment per number, each of the post "old".
  private func deviceWithMembers(_ count: Int, in world: World) async throws -> ScriptedDevice {
    let device = try await ScriptedDevice("phone", in: world)
    await device.mirror.stopAndFinish()
    try device.save { context in
      let posts = ["old", "new", "empty"].map { context.make("Post", ["title": $0]) }
      for number in 0..<count {
        context.make("Attachment", ["name": "\(number)"]).setValue(posts[0], forKey: "post")
      }
      context.make("Attachment", ["name": "last"]).setValue(posts[2], forKey: "post")
    }
    try export(device)
    return device
  }

  private func move(_ device: ScriptedDevice, _ isMeant: (String) -> Bool) throws {
    try device.save { context in
      let post = try context.first("Post", "title", "new")
      for member in try context.all("Attachment")
      where isMeant(member.value(forKey: "name") as? String ?? "") {
        member.setValue(post, forKey: "post")
      }
    }
  }

  private func deleteEmpty(_ device: ScriptedDevice) throws {
    try device.save { context in context.delete(try context.first("Post", "title", "empty")) }
  }

  /// The edited objects that are read to find moves while everything is sent in batches of 20 operations.
  private func readMembers(_ device: ScriptedDevice) throws -> Int {
    try statements(of: device) { session in
      try session.foldHistory()
      while let batch = try session.assembleBatch(limits: .init(operations: 20)) {
        let outcomes = batch.operations.map { operation in
          operation.kind == .delete
            ? CloudOutcome.deleted : .saved(tag: operation.name + "2", stamps: RecordStamps())
        }
        _ = try session.settle(batch, outcomes, fetched: [:])
      }
    }
    .filter { $0.sql.contains("instr(char(10)") }.reduce(0) { $0 + $1.rows }
  }

  @Test("A deletion of an owner does not have each batch read all moved objects")
  func deletionAfterMoves() async throws {
    let world = try await World()
    let device = try await deviceWithMembers(600, in: world)
    try move(device) { $0 == "last" }
    try export(device)
    try move(device) { $0 != "last" }
    try deleteEmpty(device)
    #expect(try readMembers(device) < 700)
    #expect(try device.mirror.read { try $0.pendingCount() } == 0)
    try await device.quit()
  }

  @Test("A deletion of an owner that waits for a refused move does not either")
  func heldDeletion() async throws {
    let world = try await World()
    let device = try await deviceWithMembers(600, in: world)
    try move(device) { $0 == "last" }
    try deleteEmpty(device)
    try move(device) { $0 != "last" }
    try device.mirror.write(MirrorAuthor.exporting) { session in
      try session.foldHistory()
      // The server refused the move.
      for record in try session.metadata.pendingRecords(limit: 1) where record.pending == .save {
        var record = record
        record.parked = "refused"
        try session.metadata.update(record)
      }
    }
    #expect(try readMembers(device) < 1400)
    // The deletion still waits.
    let left = try device.mirror.read { try $0.pendingRecords(limit: 10) }
    #expect(left.map(\.pending) == [.delete])
    try device.mirror.write(MirrorAuthor.exporting) { try $0.metadata.unparkChanges() }
    #expect(try readMembers(device) < 10)
    #expect(try device.mirror.read { try $0.pendingCount() } == 0)
    try await device.quit()
  }

  /// A device that is not connected, with a tag that has some posts.
  private func deviceWithHub(_ count: Int, in world: World) async throws -> ScriptedDevice {
    let device = try await ScriptedDevice("phone", in: world)
    await device.mirror.stopAndFinish()
    try device.save { context in
      let posts = (0..<count).map {
        context.make($0 % 2 == 0 ? "Post" : "ImagePost", ["title": "\($0)"])
      }
      context.make("Tag", ["name": "hub"]).setValue(NSSet(array: posts), forKey: "posts")
    }
    return device
  }

  @Test("A link that is added to or removed from many is found without reading the others")
  func linksOfHub() async throws {
    let world = try await World()
    let device = try await deviceWithHub(600, in: world)
    try export(device)
    for isRemoval in [true, false] {
      try device.save { context in
        let tag = try context.first("Tag", "name", "hub")
        let post = try context.first("Post", "title", "7")
        post.setValue(isRemoval ? NSSet() : NSSet(object: tag), forKey: "tags")
      }
      try device.mirror.write(MirrorAuthor.exporting) { _ = try $0.foldHistory() }
      let run = try statements(of: device) { session in
        let isMore = try session.compareEdges(limit: 500)
        #expect(!isMore)
      }
      #expect(run.count < 40)
      #expect(run.reduce(0) { $0 + $1.rows } < 40)
      let pending = try device.mirror.read { try $0.pendingEdges(limit: 10) }
      #expect(pending.map(\.pending) == [isRemoval ? .delete : .save])
      try export(device)
    }
    #expect(try device.mirror.read { try $0.pendingCount() } == 0)
    try await device.quit()
  }

  /// Compares links until none is left; returns the number of steps and their statements.
  private func compareLinks(
    _ device: ScriptedDevice
  ) throws -> (steps: Int, run: [(sql: String, rows: Int, expanded: String)]) {
    var result = (steps: 0, run: [(sql: String, rows: Int, expanded: String)]())
    var isMore = true
    while isMore {
      result.run += try statements(of: device) { session in
        try session.foldHistory()
        isMore = try session.compareEdges(limit: 5000)
      }
      result.steps += 1
    }
    return result
  }

  @Test("The links of an object with many are compared in parts, each by both of its ends")
  func partsOfHub() async throws {
    let world = try await World()
    let device = try await deviceWithHub(0, in: world)
    try export(device)
    // The tag's record is the first one: its links are not found as those of the posts.
    for isMade in [true, false] {
      try device.save { context in
        let posts = isMade ? (0..<2100).map { context.make("Post", ["title": "\($0)"]) } : []
        try context.first("Tag", "name", "hub").setValue(NSSet(array: posts), forKey: "posts")
      }
      let (steps, run) = try compareLinks(device)
      #expect(steps == 3)
      let pending = try device.mirror.read { try $0.pendingEdges(limit: 5000).map(\.pending) }
      #expect(pending == Array(repeating: isMade ? .save : .delete, count: 2100))
      // They are read from their start at first, and once more at the end.
      let comparisons = run.map(\.expanded).filter {
        $0.contains("SECONDRELATIONSHIP = 'posts' AND ID >")
      }
      #expect(comparisons.count == steps + 1)
      #expect(comparisons.count { $0.contains("ID > \(Int64.min)") } == 2)
      try device.mirror.write(MirrorAuthor.exporting) { session in
        for sql in Set(run.map(\.sql)) where !sql.contains("COUNT(*)") {
          let plan = session.metadata.connection.queryPlan(of: sql)
          for line in plan where line.contains("WSMIRROR_EDGE") {
            #expect(!line.contains("SCAN"), "\(sql)")
            let isOfOneEnd =
              line.contains("WSMIRROR_EDGE_FIRST") || line.contains("WSMIRROR_EDGE_SECOND")
            #expect(!isOfOneEnd || line.contains("rowid>?"), "\(sql)")
          }
        }
      }
      try export(device)
    }
    try await device.quit()
  }

  @Test("One step of an export compares a limited number of links")
  func linksOfStep() async throws {
    let world = try await World()
    let device = try await deviceWithHub(2500, in: world)
    var steps: [Int] = []
    var isMore = true
    while isMore {
      isMore = try device.mirror.write(MirrorAuthor.exporting) { session in
        try session.foldHistory()
        return try session.compareEdges(limit: 5000)
      }
      steps.append(try device.mirror.read { try $0.pendingEdges(limit: 5000).count })
    }
    #expect(steps.last == 2500)
    #expect(zip([0] + steps, steps).allSatisfy { $1 - $0 <= 1000 })
    try await device.quit()
  }
}
