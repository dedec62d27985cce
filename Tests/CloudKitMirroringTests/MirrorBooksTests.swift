import CloudKitMirroring
import Foundation
import Testing
import WatershedSQLite

@Suite struct MirrorBooksTests {
  private func books() throws -> MirrorBooks {
    let books = MirrorBooks(try SQLiteConnection(path: ":memory:"))
    try books.open()
    try books.open()
    return books
  }

  @Test("The metadata of a record are read as written")
  func records() throws {
    let books = try books()
    var record = BookedRecord(name: "N", recordType: "CD_A", entityName: "A", key: 4)
    record.tag = "t1"
    record.stamps = RecordStamps(created: 1, modified: 2, creator: "me", modifier: "you")
    record.base = FieldBag(["CD_x": .string("y")])
    record.pending = .save
    record.properties = ["x", "y"]
    record.edges = ["tags"]
    record.group = 9
    record = try books.insert(record)
    #expect(try books.record(named: "N") == record)
    #expect(try books.record(entity: "A", key: 4) == record)
    #expect(try books.recordName(entity: "A", key: 4) == "N")
    #expect(try books.pendingRecords(limit: 10) == [record])
    #expect(try books.pendingCount() == 1)
    record.sequence = 3
    record.sentKind = .save
    record.sent = record.properties
    record.pending = .nothing
    record.properties = []
    try books.update(record)
    #expect(try books.pendingRecords(limit: 10).isEmpty)
    #expect(try books.records(inBatch: 3) == [record])
    #expect(record.unconfirmed == ["x", "y"])
    record.requeue()
    #expect(record.pending == .save)
    record.parked = "No."
    try books.update(record)
    #expect(try books.pendingRecords(limit: 10).isEmpty)
    #expect(try books.parkedRecords(limit: 10).map(\.name) == ["N"])
    try books.remove(record)
    #expect(try books.record(named: "N") == nil)
  }

  @Test("Edges are found by either end")
  func edges() throws {
    let books = try books()
    let relationship = EdgeRelationship(
      .init(entityName: "Post", relationship: "tags"),
      .init(entityName: "Tag", relationship: "posts")
    )
    var edge = BookedEdge(
      name: "E",
      edge: Edge(relationship: relationship, firstRecord: "P", secondRecord: "T")
    )
    edge.isLinked = true
    edge = try books.insert(edge)
    #expect(try books.edge(named: "E") == edge)
    #expect(try books.edges(touching: "P") == [edge])
    #expect(try books.edges(touching: "T") == [edge])
    #expect(try books.edges(of: "P", relationship: "tags", isFirst: true) == [edge])
    #expect(try books.edges(of: "T", relationship: "posts", isFirst: true).isEmpty)
    #expect(try books.edges(like: edge.edge) == [edge])
  }

  @Test("Zones, single values, links, batches, events and recovery entries are read as written")
  func theRest() throws {
    let books = try books()
    var zone = try books.zone("z")
    zone.token = Data([1])
    zone.isSaved = true
    try books.save(zone)
    #expect(try books.zone("z") == zone)
    try books.setMeta(.scanPosition, .text("d"))
    #expect(try books.text(.scanPosition) == "d")
    try books.setMeta(.scanPosition, nil)
    #expect(try books.text(.scanPosition) == nil)
    #expect(try books.nextSequence() == 1)
    #expect(try books.nextSequence() == 2)
    try books.keepBatch(2, Data([2]))
    #expect(try books.openBatch()?.sequence == 2)
    try books.dropBatch(2)
    #expect(try books.openBatch() == nil)
    let link = ParkedLink(record: "a", property: "p", target: "b", isOneToOne: false)
    try books.park(link)
    #expect(try books.linksParked(for: "b") == [link])
    try books.unpark(record: "b")
    #expect(try books.parkedLinkCount() == 0)
    let identifier = UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1))
    var event = BookedEvent(identifier: identifier, type: 2, started: 5)
    try books.keep(event)
    event.ended = 6
    event.succeeded = true
    try books.keep(event)
    let events = try books.events(startedAfter: 4)
    #expect(events.count == 1)
    #expect(events.first?.succeeded == true)
    #expect(try books.events(following: identifier).isEmpty)
    try books.keep(
      RecoveredEdit(record: "r", entityName: "A", reason: "x", noted: 1, fields: FieldBag())
    )
    #expect(try books.recoveredEdits().map(\.record) == ["r"])
  }

  @Test("Events are trimmed while the mirror runs, and the newest are kept")
  func eventsAreTrimmed() throws {
    let books = try books()
    let last = UUID()
    try books.connection.transaction {
      for number in 0..<20_999 {
        try books.keep(BookedEvent(identifier: UUID(), type: 1, started: Double(number)))
      }
      try books.keep(BookedEvent(identifier: last, type: 1, started: 20_999))
    }
    let events = try books.events()
    #expect(events.count == 10_000)
    #expect(events.last?.identifier == last)
  }

  @Test("Metadata of another version are refused and not changed")
  func otherVersion() throws {
    let books = try books()
    try books.setMeta(.version, .integer(99))
    #expect(throws: (any Error).self) { try books.open() }
    #expect(try books.integer(.version) == 99)
  }

  @Test("Pending changes are counted by indexes, each record and edge once")
  func pendingCount() throws {
    let books = try books()
    for number in 0..<4 {
      var record = BookedRecord(
        name: "\(number)",
        recordType: "CD_A",
        entityName: "A",
        key: Int64(number)
      )
      // 0 is pending in every way, 1 is in a batch, 2 pending for its edges, 3 is parked.
      if number == 0 || number == 3 { record.pending = .save }
      if number < 2 { (record.sequence, record.sentKind) = (1, .save) }
      if number == 0 || number == 2 { record.edges = ["tags"] }
      if number == 3 { record.parked = "refused" }
      try books.insert(record)
    }
    #expect(try books.pendingCount() == 3)
    let plan = try books.connection.query("EXPLAIN QUERY PLAN " + MirrorBooks.pendingCountSQL) {
      $0.text(3)
    }
    let scans = plan.filter { $0.hasPrefix("SCAN WSMIRROR") && !$0.contains("INDEX") }
    #expect(scans.isEmpty)
  }
}
