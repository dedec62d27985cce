import CloudKitMirroring
import Foundation
import Testing
import WatershedSQLite

@Suite struct MirrorMetadataTests {
  private func metadata() throws -> MirrorMetadata {
    let metadata = MirrorMetadata(try SQLiteConnection(path: ":memory:"))
    try metadata.open()
    try metadata.open()
    return metadata
  }

  @Test("The metadata of a record are read as written")
  func records() throws {
    let metadata = try metadata()
    var record = RecordMetadata(name: "N", recordType: "CD_A", entityName: "A", key: 4)
    record.tag = "t1"
    record.stamps = RecordStamps(created: 1, modified: 2, creator: "me", modifier: "you")
    record.base = FieldBag(["CD_x": .string("y")])
    record.pending = .save
    record.properties = ["x", "y"]
    record.edges = ["tags"]
    record.group = 9
    record = try metadata.insert(record)
    #expect(try metadata.record(named: "N") == record)
    #expect(try metadata.record(entity: "A", key: 4) == record)
    #expect(try metadata.recordName(entity: "A", key: 4) == "N")
    #expect(try metadata.pendingRecords(limit: 10) == [record])
    #expect(try metadata.pendingCount() == 1)
    record.sentChange = .inBatch(3, .save, properties: record.properties)
    record.pending = .nothing
    record.properties = []
    try metadata.update(record)
    #expect(try metadata.pendingRecords(limit: 10).isEmpty)
    #expect(try metadata.records(inBatch: 3) == [record])
    #expect(record.unconfirmed == ["x", "y"])
    record.requeue()
    #expect(record.pending == .save)
    record.parked = "No."
    try metadata.update(record)
    #expect(try metadata.pendingRecords(limit: 10).isEmpty)
    #expect(try metadata.parkedRecords(limit: 10).map(\.name) == ["N"])
    try metadata.remove(record)
    #expect(try metadata.record(named: "N") == nil)
  }

  @Test("Whole rows are read and written with the columns of their tables, in order")
  func columns() throws {
    let metadata = try metadata()
    func names(_ table: String) throws -> [String] {
      try metadata.connection.query("PRAGMA table_info(\(table))") { $0.text(1) }
    }
    #expect(try names("WSMIRROR_RECORD") == RecordMetadata.Column.allCases.map(\.sql))
    #expect(try names("WSMIRROR_EDGE") == EdgeMetadata.Column.allCases.map(\.sql))
  }

  @Test("A record in a batch that is not stored is a broken invariant")
  func lostBatch() throws {
    let metadata = try metadata()
    var record = RecordMetadata(name: "N", recordType: "CD_A", entityName: "A", key: 4)
    record.sentChange = .inBatch(3, .save, properties: [])
    _ = try metadata.insert(record)
    #expect(try metadata.brokenInvariants() == ["the batch of N is not stored"])
  }

  @Test("What was sent of a change is nothing, a part of an open batch, or in doubt")
  func sentChanges() {
    #expect(SentChange(sequence: nil, kind: .nothing) == .nothing)
    #expect(SentChange(sequence: nil, kind: .save) == .doubtful)
    #expect(SentChange(sequence: nil, kind: .delete) == .nothing)
    #expect(SentChange(sequence: 3, kind: .nothing, properties: ["x"]) == .nothing)
    let sent = SentChange(sequence: 3, kind: .save, properties: ["x"])
    #expect(sent == .inBatch(3, .save, properties: ["x"]))
    #expect(sent.sequence == 3)
    #expect(sent.kind == .save)
    #expect(sent.properties == ["x"])
    #expect(SentChange(sequence: 3, kind: .delete).kind == .delete)
    #expect(SentChange.doubtful.kind == .save)
    #expect(SentChange.doubtful.sequence == nil)
  }

  @Test("Edges are found by either end")
  func edges() throws {
    let metadata = try metadata()
    let relationship = EdgeRelationship(
      .init(entityName: "Post", relationship: "tags"),
      .init(entityName: "Tag", relationship: "posts")
    )
    var edge = EdgeMetadata(
      name: "E",
      edge: Edge(relationship: relationship, firstRecord: "P", secondRecord: "T")
    )
    edge.isLinked = true
    edge = try metadata.insert(edge)
    #expect(try metadata.edge(named: "E") == edge)
    #expect(try metadata.edges(touching: "P") == [edge])
    #expect(try metadata.edges(touching: "T") == [edge])
    #expect(try metadata.edges(of: "P", relationship: "tags", isFirst: true) == [edge])
    #expect(try metadata.edges(of: "T", relationship: "posts", isFirst: true).isEmpty)
    #expect(try metadata.edges(like: edge.edge) == [edge])
  }

  @Test("One link of an object with many is found without the others", arguments: [true, false])
  func linkOfHub(isFirst: Bool) throws {
    let metadata = try metadata()
    // A store of an earlier version has no index for it.
    try metadata.connection.execute("DROP INDEX WSMIRROR_EDGE_ENDS")
    let relationship = EdgeRelationship(
      .init(entityName: "Post", relationship: "tags"),
      .init(entityName: "Tag", relationship: "posts")
    )
    func edge(_ number: Int) -> Edge {
      Edge(
        relationship: relationship,
        firstRecord: isFirst ? "hub" : "\(number)",
        secondRecord: isFirst ? "\(number)" : "hub"
      )
    }
    for number in 0..<10 {
      try metadata.insert(EdgeMetadata(name: "E\(number)", edge: edge(number)))
    }
    try metadata.open()
    var run: [String] = []
    metadata.connection.trace { event in
      if case .ended(let sql, _, _) = event { run.append(sql) }
    }
    #expect(try metadata.edges(like: edge(7)).map(\.name) == ["E7"])
    let plan = run.prefix(1).flatMap { metadata.connection.queryPlan(of: $0) }
    #expect(plan.contains { $0.hasSuffix("(FIRSTRECORD=? AND SECONDRECORD=?)") }, "\(plan)")
  }

  @Test("Zones, single values, links, batches, events and recovery entries are read as written")
  func theRest() throws {
    let metadata = try metadata()
    var zone = try metadata.zone("z")
    zone.token = Data([1])
    zone.isSaved = true
    try metadata.save(zone)
    #expect(try metadata.zone("z") == zone)
    try metadata.setMeta(.scanPosition, .text("d"))
    #expect(try metadata.text(.scanPosition) == "d")
    try metadata.setMeta(.scanPosition, nil)
    #expect(try metadata.text(.scanPosition) == nil)
    #expect(try metadata.nextSequence() == 1)
    #expect(try metadata.nextSequence() == 2)
    try metadata.keepBatch(2, Data([2]))
    #expect(try metadata.openBatch()?.sequence == 2)
    try metadata.dropBatch(2)
    #expect(try metadata.openBatch() == nil)
    let link = ParkedLink(record: "a", property: "p", target: "b", isOneToOne: false)
    try metadata.park(link)
    #expect(try metadata.linksParked(for: "b") == [link])
    // Another record's link waits for its object still, and its one-to-one does not.
    let partner = ParkedLink(record: "c", property: "p", target: "b", isOneToOne: true)
    try metadata.park(partner)
    try metadata.unpark(record: "b")
    #expect(try metadata.links(of: "a") == [link])
    #expect(try metadata.links(of: "c").isEmpty)
    try metadata.unpark(record: "a")
    #expect(try metadata.parkedLinkCount() == 0)
    let identifier = UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1))
    var event = EventMetadata(identifier: identifier, type: 2, started: 5)
    try metadata.keep(event)
    event.ended = 6
    event.succeeded = true
    try metadata.keep(event)
    let events = try metadata.events(startedAfter: 4)
    #expect(events.count == 1)
    #expect(events.first?.succeeded == true)
    #expect(try metadata.events(following: identifier).isEmpty)
    try metadata.keep(
      RecoveredEdit(record: "r", entityName: "A", reason: "x", noted: 1, fields: FieldBag())
    )
    #expect(try metadata.recoveredEdits().map(\.record) == ["r"])
  }

  @Test("Events are trimmed while the mirror runs, and the newest are kept")
  func eventsAreTrimmed() throws {
    let metadata = try metadata()
    let last = UUID()
    try metadata.connection.transaction {
      for number in 0..<20_999 {
        try metadata.keep(EventMetadata(identifier: UUID(), type: 1, started: Double(number)))
      }
      try metadata.keep(EventMetadata(identifier: last, type: 1, started: 20_999))
    }
    let events = try metadata.events()
    #expect(events.count == 10_000)
    #expect(events.last?.identifier == last)
  }

  @Test("Metadata of another version are refused and not changed")
  func otherVersion() throws {
    let metadata = try metadata()
    try metadata.setMeta(.version, .integer(99))
    #expect(throws: (any Error).self) { try metadata.open() }
    #expect(try metadata.integer(.version) == 99)
  }

  @Test("Pending changes are counted by indexes, each record and edge once")
  func pendingCount() throws {
    let metadata = try metadata()
    for number in 0..<4 {
      var record = RecordMetadata(
        name: "\(number)",
        recordType: "CD_A",
        entityName: "A",
        key: Int64(number)
      )
      // 0 is pending in every way, 1 is in a batch, 2 pending for its edges, 3 is parked.
      if number == 0 || number == 3 { record.pending = .save }
      if number < 2 { record.sentChange = .inBatch(1, .save, properties: []) }
      if number == 0 || number == 2 { record.edges = ["tags"] }
      if number == 3 { record.parked = "refused" }
      try metadata.insert(record)
    }
    #expect(try metadata.pendingCount() == 3)
    let plan = try metadata.connection.query("EXPLAIN QUERY PLAN " + MirrorMetadata.pendingCountSQL)
    {
      $0.text(3)
    }
    let scans = plan.filter { $0.hasPrefix("SCAN WSMIRROR") && !$0.contains("INDEX") }
    #expect(scans.isEmpty)
  }

  @Test("Edits of one property are found among edits alone, however many deletions wait")
  func edits() throws {
    let metadata = try metadata()
    for number in 0..<4 {
      var record = RecordMetadata(
        name: "\(number)",
        recordType: "CD_A",
        entityName: "A",
        key: Int64(number)
      )
      // 0 is edited, 1 is parked, 2 has another edit, and the server has not got 3.
      record.pending = .save
      record.properties = number == 2 ? ["owners"] : ["owner"]
      if number != 3 { record.tag = "t" }
      if number == 1 { record.parked = "refused" }
      try metadata.insert(record)
    }
    func found(after id: Int64) throws -> [RecordMetadata] {
      try metadata.recordsEdited(entity: "A", property: "owner", after: id, limit: 10)
    }
    let first = try found(after: 0)
    #expect(first.map(\.name) == ["0", "1"])
    #expect(try found(after: #require(first.first).id).map(\.name) == ["1"])
    let plan = try metadata.connection.query(
      "EXPLAIN QUERY PLAN SELECT * FROM WSMIRROR_RECORD WHERE \(MirrorMetadata.isEdited)"
    ) { $0.text(3) }
    #expect(plan.contains { $0.contains("WSMIRROR_RECORD_EDITED") }, "\(plan)")
  }
}
