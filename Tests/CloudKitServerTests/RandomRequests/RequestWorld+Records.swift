import CloudKitWebServices
import Foundation

@testable import CloudKitServer

/// Batches of records: single, repeated, and concurrent.
extension RequestWorld {
  /// Sends a batch; if the storage fails at its commit, the device repeats it.
  func modify(
    _ operations: [ModelOperation],
    in zone: String,
    by device: Int,
    isAtomic: Bool,
    failing failure: FlakyStorage.Failure?
  ) async throws {
    devices[device].sequence += 1
    let number = devices[device].sequence
    let sequence = ClientSequence(
      device: "device \(device)",
      sequence: number,
      acknowledged: number - 1
    )
    let server = servers.firstIndex { $0.service === devices[device].person.server.service } ?? 0
    if let failure { storages[server].failNextCommit(failure) }
    var results: [ItemResult<RecordDictionary>]
    do {
      results = try await send(operations, in: zone, by: device, isAtomic, sequence)
    } catch let error as ErrorDictionary where error.serverErrorCode == .zoneNotFound {
      _ = storages[server].calm()
      return try await zoneIsMissing(zone, for: device)
    } catch is ErrorDictionary {
      // The outcome is unknown: the batch is repeated with its number.
      try require(failure != nil && !storages[server].calm(), "a request failed for no reason")
      results = try await send(operations, in: zone, by: device, isAtomic, sequence)
    }
    // A batch that changes nothing makes no commit.
    _ = storages[server].calm()
    if results.allSatisfy({ $0.error?.serverErrorCode == .zoneNotFound }) {
      return try await zoneIsMissing(zone, for: device)
    }
    count(results)
    let before = zones[zone] ?? ModelZone()
    if device == Self.guest {
      try settleGuest(operations, results, in: zone)
    } else {
      try require(zones[zone] != nil, "records were saved in the zone \(zone), which is gone")
      let wrong = zones[zone]?.settle(operations, results, isAtomic: isAtomic) ?? []
      try require(wrong.isEmpty, wrong.joined(separator: "; "))
    }
    let after = zones[zone] ?? ModelZone()
    // The reply of a batch that changed nothing is not kept: when repeated, it is decided again.
    last =
      before == after
      ? nil
      : Sent(
        device: device,
        zone: zone,
        operations: operations,
        isAtomic: isAtomic,
        sequence: sequence,
        results: results
      )
    let gone = before.records.keys.filter { after.records[$0] == nil }
    let asked = Set(operations.map(\.name))
    counts["cascaded", default: 0] += gone.filter { !asked.contains($0) }.count
    if failure != nil { counts["failed commit", default: 0] += 1 }
    if device == Self.guest { counts["guest's batch", default: 0] += 1 }
    staleTags += before.records.values.map(\.tag).filter { tag in
      !after.records.values.contains { $0.tag == tag }
    }.sorted().prefix(2)
    try await checkNotifications(
      from: device,
      owner: before != after,
      guest: before.visibleToGuest != after.visibleToGuest
    )
  }

  private func send(
    _ operations: [ModelOperation],
    in zone: String,
    by device: Int,
    _ isAtomic: Bool,
    _ sequence: ClientSequence
  ) async throws -> [ItemResult<RecordDictionary>] {
    try await devices[device].person.modify(
      operations.map(\.request),
      in: devices[device].scope,
      zone: devices[device].zoneID(zone),
      atomic: isAtomic,
      sequence: sequence
    )
  }

  private func count(_ results: [ItemResult<RecordDictionary>]) {
    for result in results {
      counts[result.error?.serverErrorCode.rawValue ?? "done", default: 0] += 1
    }
  }

  private func zoneIsMissing(_ zone: String, for device: Int) async throws {
    // The number of this batch has acknowledged the previous one.
    last = nil
    let isShared = zones[zone]?.shares.values.contains(where: \.isJoined) ?? false
    let isThere = device == Self.guest ? isShared : zones[zone] != nil
    try require(!isThere, "the zone \(zone) was not found")
    try await checkNotifications(from: device, owner: false, guest: false)
  }

  /// A guest changes visible records, and creates records below them.
  private func settleGuest(
    _ operations: [ModelOperation],
    _ results: [ItemResult<RecordDictionary>],
    in zone: String
  ) throws {
    guard var model = zones[zone] else { throw Wrong(description: "a guest wrote a lost zone") }
    guard results.allSatisfy({ $0.item != nil }) else {
      // A record that is hidden from a guest may cause a conflict, and is not named.
      return
    }
    let seen = model.visibleToGuest
    for operation in operations {
      let parent = operation.parent.flatMap { seen[$0] }
      try require(
        seen[operation.name] != nil || (model.records[operation.name] == nil && parent != nil),
        "a guest wrote \(operation.name), which is not shared"
      )
    }
    let wrong = model.settle(operations, results, isAtomic: true)
    try require(wrong.isEmpty, wrong.joined(separator: "; "))
    zones[zone] = model
  }

  /// Repeats the last batch: the kept reply is returned, nothing changes, and no device is
  /// notified.
  func repeatLast() async throws {
    guard let last, last.device < devices.count else { return }
    let again = try await send(
      last.operations,
      in: last.zone,
      by: last.device,
      last.isAtomic,
      last.sequence
    )
    counts["sent again", default: 0] += 1
    try require(again == last.results, "a batch that was sent again got another reply")
    try await checkNotifications(from: last.device, owner: false, guest: false)
  }

  // MARK: Races

  /// Both of the owner's devices send a batch concurrently: replies and records must fit some
  /// order.
  func race(_ batches: [[ModelOperation]], in zone: String, isAtomic: Bool) async throws {
    guard let before = zones[zone] else { return }
    last = nil
    let zoneID = ZoneID(zoneName: zone)
    let people = Self.owners.map { devices[$0].person }
    let sequences = Self.owners.map { device in
      devices[device].sequence += 1
      let number = devices[device].sequence
      return ClientSequence(device: "device \(device)", sequence: number, acknowledged: number - 1)
    }
    async let first = people[0].modify(
      batches[0].map(\.request),
      zone: zoneID,
      atomic: isAtomic,
      sequence: sequences[0]
    )
    async let second = people[1].modify(
      batches[1].map(\.request),
      zone: zoneID,
      atomic: isAtomic,
      sequence: sequences[1]
    )
    let results = [try await first, try await second]
    for result in results { count(result) }
    var found: [String: String] = [:]
    for name in Set(batches.joined().map(\.name)) {
      found[name] = try? await people[0].lookup(name, zone: zoneID).recordChangeTag
    }
    var complaints: [String] = []
    for order in [[0, 1], [1, 0]] {
      var model = before
      var changes = [false, false]
      var wrong: [String] = []
      for index in order {
        let former = model
        wrong += model.settle(batches[index], results[index], isAtomic: isAtomic)
        changes[index] = former != model
      }
      let isFound = found.allSatisfy { model.records[$0]?.tag == $1 }
      let isThere = model.records.keys.allSatisfy { name in
        found[name] != nil || !batches.joined().contains { $0.name == name }
      }
      guard wrong.isEmpty, isFound, isThere else {
        complaints += wrong
        continue
      }
      zones[zone] = model
      counts["raced", default: 0] += 1
      return try await checkNotifications([changes[1], changes[0], nil])
    }
    throw Wrong(description: "no order explains the replies: \(complaints.joined(separator: "; "))")
  }
}
