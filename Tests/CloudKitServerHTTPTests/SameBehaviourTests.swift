import CloudKitServer
import CloudKitWebServices
import Foundation
import OpenCloudKit
import Testing

/// The same calls over sockets and inside the process: the client's results are equal.
@Suite("Equal behavior of both transports")
struct SameBehaviourTests {
  @Test("Saves, conflicts, batches, changes and errors are equal over HTTP and in process")
  func story() async throws {
    try await withTemporaryFolder { folder in
      let (runs, continuation) = AsyncStream.makeStream(of: [String].self)
      try await TestCloud.run(in: folder.appendingPathComponent("a")) { cloud in
        continuation.yield(try await results(of: container(cloud, isInProcess: false)))
      }
      try await TestCloud.run(in: folder.appendingPathComponent("b")) { cloud in
        continuation.yield(try await results(of: container(cloud, isInProcess: true)))
      }
      continuation.finish()
      var all: [[String]] = []
      for await run in runs { all.append(run) }
      #expect(all.count == 2)
      #expect(all.first == all.last)
      #expect(all.first == Self.expected)
    }
  }

  private static let expected = [
    "changed keys after saving: []",
    "conflict: serverRecordChanged server=2 client=3 ancestor=1",
    "changed keys kept: all=4",
    "overwritten by force: 3",
    "batch: serverRecordChanged batchRequestFailed",
    "good was not saved: unknownItem",
    "results: 1 saved, 1 failed",
    "fetched: present, unknownItem",
    "removed field: nil",
    "changes: changed=1 deleted=1",
    "nothing after the token: 0",
    "token archive: true",
    "query: [\"n0\", \"n1\", \"n2\"]",
    "query pages: 2+1",
    "missing zone: zoneNotFound",
    "deleted zone: true",
  ]

  private func results(of container: CKContainer) async throws -> [String] {
    var lines: [String] = []
    let database = container.privateCloudDatabase
    let zone = CKRecordZone(zoneName: "story")
    try await database.save(zone)
    func id(_ name: String) -> CKRecord.ID { CKRecord.ID(recordName: name, zoneID: zone.zoneID) }

    let record = CKRecord(recordType: "Note", recordID: id("one"))
    record["version"] = 1
    record["tags"] = ["a", "b"]
    let saved = try await database.save(record)
    lines.append("changed keys after saving: \(saved.changedKeys())")

    let mine = try await database.record(for: id("one"))
    let theirs = try await database.record(for: id("one"))
    theirs["version"] = 2
    try await database.save(theirs)
    mine["version"] = 3
    do {
      try await database.save(mine)
      lines.append("no conflict")
    } catch let error as CKError {
      lines.append(
        "conflict: \(error.code) server=\(number(error.serverRecord)) "
          + "client=\(number(error.clientRecord)) ancestor=\(number(error.ancestorRecord))"
      )
    }
    mine["version"] = 4
    let kept = try await database.modifyRecords(
      saving: [mine],
      deleting: [],
      savePolicy: .changedKeys,
      atomically: true
    )
    lines.append("changed keys kept: all=\(number(try kept.saveResults[id("one")]?.get()))")
    let forced = CKRecord(recordType: "Note", recordID: id("one"))
    forced["version"] = 3
    forced["tags"] = ["c"]
    _ = try await database.modifyRecords(
      saving: [forced],
      deleting: [],
      savePolicy: .allKeys,
      atomically: true
    )
    lines.append("overwritten by force: \(number(try await database.record(for: id("one"))))")

    lines += try await batches(database, id)

    let nulled = try await database.record(for: id("one"))
    nulled["tags"] = nil
    try await database.save(nulled)
    let again = try await database.record(for: id("one"))
    lines.append("removed field: \(again["tags"].map { "\($0)" } ?? "nil")")

    lines += try await changesAndQueries(database, zone, id)
    try await database.deleteRecordZone(withID: zone.zoneID)
    do {
      _ = try await database.record(for: id("one"))
      lines.append("still there")
    } catch let error as CKError {
      lines.append("missing zone: \(error.code)")
    }
    let rest = try await database.databaseChanges(since: nil)
    lines.append("deleted zone: \(rest.modifications.isEmpty)")
    return lines
  }

  private func batches(
    _ database: CKDatabase,
    _ id: (String) -> CKRecord.ID
  ) async throws -> [String] {
    var lines: [String] = []
    let stale = try await database.record(for: id("one"))
    let newer = try await database.record(for: id("one"))
    newer["version"] = 10
    try await database.save(newer)
    stale["version"] = 11
    let good = CKRecord(recordType: "Note", recordID: id("good"))
    good["version"] = 1
    let atomic = try await database.modifyRecords(
      saving: [stale, good],
      deleting: [],
      savePolicy: .ifServerRecordUnchanged,
      atomically: true
    )
    let results = atomic.saveResults
    lines.append("batch: \(code(results[id("one")])) \(code(results[id("good")]))")
    let missing = try await database.records(for: [id("good")])
    lines.append("good was not saved: \(code(missing[id("good")]))")
    let loose = try await database.modifyRecords(
      saving: [stale, good],
      deleting: [],
      savePolicy: .ifServerRecordUnchanged,
      atomically: false
    )
    let failed = loose.saveResults.values.filter { code($0) != "none" }.count
    lines.append("results: \(loose.saveResults.count - failed) saved, \(failed) failed")
    let fetched = try await database.records(for: [id("good"), id("none")])
    lines.append(
      "fetched: \(code(fetched[id("good")]) == "none" ? "present" : "absent"), "
        + code(fetched[id("none")])
    )
    return lines
  }

  private func changesAndQueries(
    _ database: CKDatabase,
    _ zone: CKRecordZone,
    _ id: (String) -> CKRecord.ID
  ) async throws -> [String] {
    var lines: [String] = []
    let start = try await database.recordZoneChanges(inZoneWith: zone.zoneID, since: nil)
    let fresh = CKRecord(recordType: "Note", recordID: id("fresh"))
    fresh["version"] = 1
    try await database.save(fresh)
    try await database.deleteRecord(withID: id("good"))
    let archive = try NSKeyedArchiver.archivedData(
      withRootObject: start.changeToken,
      requiringSecureCoding: true
    )
    let token = try #require(
      try NSKeyedUnarchiver.unarchivedObject(ofClass: CKServerChangeToken.self, from: archive)
    )
    let next = try await database.recordZoneChanges(inZoneWith: zone.zoneID, since: token)
    lines.append(
      "changes: changed=\(next.modificationResultsByID.count) deleted=\(next.deletions.count)"
    )
    let last = try await database.recordZoneChanges(
      inZoneWith: zone.zoneID,
      since: next.changeToken
    )
    lines.append("nothing after the token: \(last.modificationResultsByID.count)")
    lines.append("token archive: \(token == start.changeToken)")

    for number in 0..<3 {
      let item = CKRecord(recordType: "Item", recordID: id("n\(number)"))
      item["order"] = number
      try await database.save(item)
    }
    let query = CKQuery(
      recordType: "Item",
      filters: [
        QueryFilter(
          comparator: .greaterThanOrEquals,
          fieldName: "order",
          fieldValue: FieldValue(.int64(0))
        )
      ],
      sorts: [QuerySort(fieldName: "order", ascending: true)]
    )
    let found = try await database.records(matching: query, inZoneWith: zone.zoneID)
    lines.append("query: \(found.matchResults.map(\.0.recordName))")
    let page = try await database.records(
      matching: query,
      inZoneWith: zone.zoneID,
      resultsLimit: 2
    )
    let cursor = try #require(page.queryCursor)
    let rest = try await database.records(continuingMatchFrom: cursor, resultsLimit: 2)
    lines.append("query pages: \(page.matchResults.count)+\(rest.matchResults.count)")
    return lines
  }

  private func number(_ record: CKRecord?) -> String {
    (record?["version"] as? Int).map { "\($0)" } ?? "nil"
  }

  private func code<Value>(_ result: Result<Value, any Error>?) -> String {
    switch result {
    case .success: return "none"
    case .failure(let error as CKError): return "\(error.code)"
    case .failure(let error): return "\(error)"
    case nil: return "no result"
    }
  }

  private func container(_ cloud: TestCloud, isInProcess: Bool) -> CKContainer {
    let service = cloud.service
    return CKContainer(
      identifier: TestCloud.container,
      configuration: CKContainerConfiguration(
        url: URL(string: cloud.url),
        apiToken: cloud.apiToken,
        webAuthToken: cloud.webAuthToken
      ),
      transport: isInProcess ? InProcessTransport { await service.respond(to: $0) } : nil,
      clientIdentifier: "device"
    )
  }
}
