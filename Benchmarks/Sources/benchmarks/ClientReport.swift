import CloudKitWebServices
import Foundation
import OpenCloudKit
import Synchronization

/// The cost of CloudKit's API, compared with `JSONSerialization` on the same bytes, in processor
/// time, so that it is comparable on a busy machine.
struct ClientReport {
  private static let pageSize = 200
  private static let rounds = 15
  private static let savedRecords = 10_000
  private static let fewChanges = 1_000
  private static let manyChanges = 100_000
  private static let zone = CKRecordZone.ID(zoneName: "notes")

  /// A measurement; the least of several rounds is used, since other work on the machine only adds
  /// time.
  private struct Weighed {
    /// The processor seconds of the client.
    var client: Double
    /// The processor seconds of `JSONSerialization` for writing the requests and parsing the
    /// replies.
    var json: Double
  }

  func run() async throws {
    print("The client, 200 records a request; least processor times of \(Self.rounds) rounds:\n")
    print(row(["call", "client ms", "JSON ms", "ratio", "at most", "met"]))
    var total = Weighed(client: 0, json: 0)
    for (name, weighed) in [
      ("records to bytes (save)", try await save()),
      ("bytes to records (fetch)", try await fetch()),
    ] {
      print(line(name, weighed))
      total.client += weighed.client
      total.json += weighed.json
    }
    print(line("both", total, target: 1.5))
    try await bulkSave()
    try bulkFetch()
  }

  private func line(_ name: String, _ weighed: Weighed, target: Double? = nil) -> String {
    let measured = weighed.client / weighed.json
    return row([
      name,
      String(format: "%.2f", weighed.client * 1000),
      String(format: "%.2f", weighed.json * 1000),
      ratio(measured),
      target.map { ratio($0) } ?? "",
      target.map { measured <= $0 ? "yes" : "no" } ?? "",
    ])
  }

  // MARK: A page

  private func save() async throws -> Weighed {
    let rig = ClientRig()
    let database = rig.container.privateCloudDatabase
    let reply = try ClientRig.saved(0..<Self.pageSize, in: Self.zone)
    var least = Double.infinity
    for _ in 0..<Self.rounds {
      rig.answer([reply])
      let records = (0..<Self.pageSize).map { ClientRig.record($0, in: Self.zone) }
      let start = processorSeconds()
      let results = try await database.modifyRecords(saving: records, deleting: [])
      least = min(least, processorSeconds() - start)
      try check(results.saveResults.count)
    }
    return Weighed(client: least, json: try json(writing: rig.bodies, parsing: reply))
  }

  private func fetch() async throws -> Weighed {
    let rig = ClientRig()
    let database = rig.container.privateCloudDatabase
    let reply = try ClientRig.found(0..<Self.pageSize, in: Self.zone)
    let recordIDs = (0..<Self.pageSize).map { ClientRig.record($0, in: Self.zone).recordID }
    var least = Double.infinity
    for _ in 0..<Self.rounds {
      rig.answer([reply])
      let start = processorSeconds()
      let results = try await database.records(for: recordIDs)
      least = min(least, processorSeconds() - start)
      try check(results.values.filter { (try? $0.get()) != nil }.count)
    }
    return Weighed(client: least, json: try json(writing: rig.bodies, parsing: reply))
  }

  private func json(writing bodies: [Data], parsing reply: Data) throws -> Double {
    let objects = try bodies.map { try JSONSerialization.jsonObject(with: $0) }
    var least = Double.infinity
    for _ in 0..<Self.rounds {
      let start = processorSeconds()
      for object in objects { _ = try JSONSerialization.data(withJSONObject: object) }
      _ = try JSONSerialization.jsonObject(with: reply)
      least = min(least, processorSeconds() - start)
    }
    return least
  }

  private struct Unexpected: Error { var count: Int }

  private func check(_ count: Int, expected: Int = pageSize) throws {
    guard count == expected else { throw Unexpected(count: count) }
  }

  // MARK: Many records

  private func bulkSave() async throws {
    let rig = ClientRig()
    let database = rig.container.privateCloudDatabase
    let zone = CKRecordZone.ID.default
    let count = Self.savedRecords
    rig.answer(
      try stride(from: 0, to: count, by: Self.pageSize).map {
        try ClientRig.saved($0..<$0 + Self.pageSize, in: zone)
      }
    )
    let records = (0..<count).map { ClientRig.record($0, in: zone) }
    let start = processorSeconds()
    let results = try await database.modifyRecords(saving: records, deleting: [])
    let span = processorSeconds() - start
    try check(results.saveResults.count, expected: count)
    print(
      String(
        format: "\n%d records saved with default settings, answered from memory: %.2f s, "
          + "%.1f µs of processor per record.",
        count,
        span,
        span / Double(count) * 1e6
      )
    )
  }

  /// Fetches changes in separate processes, since each process reports its own peak memory.
  private func bulkFetch() throws {
    print("\nFetching the changes of a zone with CKFetchRecordZoneChangesOperation:\n")
    print(row(["records", "µs a record", "peak MB"]))
    for count in [Self.fewChanges, Self.manyChanges] {
      let fetched: Fetched = try inProcess(["client-changes", "--records", "\(count)"])
      print(
        row([
          "\(fetched.count)",
          String(format: "%.1f", fetched.seconds / Double(fetched.count) * 1e6),
          "\(fetched.peakMegabytes)",
        ])
      )
    }
  }

  /// The cost of fetching changes.
  struct Fetched: Codable {
    var count: Int
    var seconds: Double
    var peakMegabytes: Int
  }

  /// Fetches a number of changes in this process.
  static func fetchChanges(_ count: Int) async throws -> Fetched {
    let rig = ClientRig()
    let page = try ClientRig.changes(0..<pageSize, in: zone, isLast: false)
    let last = try ClientRig.changes(0..<pageSize, in: zone, isLast: true)
    rig.answer(Array(repeating: page, count: count / pageSize - 1) + [last])
    let operation = CKFetchRecordZoneChangesOperation(recordZoneIDs: [zone])
    let seen = Mutex(0)
    operation.recordWasChangedBlock = { _, result in
      if case .success = result { seen.withLock { $0 += 1 } }
    }
    let start = processorSeconds()
    try await withCheckedThrowingContinuation {
      (continuation: CheckedContinuation<Void, any Error>) in
      operation.fetchRecordZoneChangesResultBlock = { continuation.resume(with: $0) }
      rig.container.privateCloudDatabase.add(operation)
    }
    return Fetched(
      count: seen.withLock { $0 },
      seconds: processorSeconds() - start,
      peakMegabytes: peakMegabytes()
    )
  }
}
