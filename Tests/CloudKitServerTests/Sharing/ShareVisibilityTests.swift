import CloudKitServer
import CloudKitWebServices
import Effects
import Foundation
import Testing

/// A naive model of visibility: trees, shares and their participants.
private struct VisibilityModel {
  /// The parent of each record.
  var records: [String: String?] = [:]
  /// The root of each share.
  var shares: [String: String] = [:]
  /// The participants of each share.
  var guests: [String: Set<Int>] = [:]

  func share(of name: String) -> String? {
    var next: String? = name
    var steps = 0
    while let current = next, records[current] != nil, steps < 100 {
      if let share = shares.first(where: { $0.value == current })?.key { return share }
      next = records[current] ?? nil
      steps += 1
    }
    return nil
  }

  func below(_ name: String) -> Set<String> {
    var found: Set<String> = [name]
    var level: Set<String> = [name]
    while !level.isEmpty {
      level = Set(records.filter { $0.value.map(level.contains) ?? false }.keys)
        .subtracting(found)
      found.formUnion(level)
    }
    return found
  }

  func visible(to guest: Int) -> Set<String> {
    let open = Set(shares.keys.filter { guests[$0]?.contains(guest) ?? false })
    let records = records.keys.filter { share(of: $0).map(open.contains) ?? false }
    return Set(records).union(open)
  }
}

/// The state of a participant's device, from the feeds alone.
private struct Replica {
  var records: [String: RecordDictionary] = [:]
  var databaseToken: String?
  var zoneToken: String?

  /// Follows both feeds, with pages of a random size.
  mutating func sync(_ guest: Person, _ zone: ZoneID, limit: Int) async throws {
    let changes = try await guest.sharedChanges(since: databaseToken)
    databaseToken = changes.syncToken
    for item in changes.zones {
      if item.item?.deleted == true {
        records = [:]
        zoneToken = nil
        continue
      }
      var isMoreComing = true
      while isMoreComing {
        let page = try await guest.feed(zone, since: zoneToken, limit: limit)
        for record in page.records.compactMap(\.item) {
          let name = try #require(record.recordName)
          records[name] = record.deleted == true ? nil : record
        }
        zoneToken = page.syncToken
        isMoreComing = page.moreComing == true
      }
    }
  }
}

@Suite("Visibility in shares, compared with a naive model")
struct ShareVisibilityTests {
  @Test("Each participant's feed, replayed, has the visible records", arguments: 1...12)
  func replay(seed: Int) async throws {
    let random = SeededRandomness(seed: UInt64(seed))
    func pick(_ count: Int) -> Int { Int(random.next() % UInt64(max(count, 1))) }
    let server = try await TestServer(seed: UInt64(seed))
    let owner = try await server.person("owner")
    var guests: [Person] = []
    for name in ["bob", "cleo", "dan"] { guests.append(try await server.person(name)) }
    try await owner.makeZone()
    let zone = try await TestServer.zone.owned(by: owner)
    var model = VisibilityModel()
    var replicas = Array(repeating: Replica(), count: guests.count)
    var made = 0
    var log: [String] = []

    for _ in 0..<45 {
      let names = model.records.keys.sorted()
      let name = names.isEmpty ? nil : names[pick(names.count)]
      switch pick(10) {
      case 0...2:
        // A record, possibly below another one.
        made += 1
        let parent = pick(3) == 0 ? nil : name
        log.append("make r\(made) below \(parent ?? "nothing")")
        _ = try await owner.modify([.make(.create, "r\(made)", parent: parent)])[0].get()
        model.records["r\(made)"] = .some(parent)
      case 3:
        guard let name else { continue }
        log.append("change \(name)")
        try await owner.save(.forceUpdate, name, ["n": .int64(Int64(log.count))])
      case 4:
        // Cycles and nested shares are excluded, because the server refuses them.
        guard let name else { continue }
        let parent = pick(3) == 0 ? nil : names[pick(names.count)]
        var operation = RecordOperation.make(.forceUpdate, name, parent: parent)
        operation.record.removesParent = parent == nil
        log.append("move \(name) below \(parent ?? "nothing")")
        let result = try await owner.modify([operation])[0]
        guard result.error == nil else { continue }
        model.records[name] = .some(parent)
      case 5:
        guard let name else { continue }
        made += 1
        log.append("share \(name) as s\(made)")
        let people = ["bob", "cleo", "dan"].map { ShareParticipant.invited($0) }
        guard (try? await owner.share(name, "s\(made)", with: people)) != nil else { continue }
        model.shares["s\(made)"] = name
        model.guests["s\(made)"] = []
      case 6, 7:
        let shares = model.shares.keys.sorted()
        guard !shares.isEmpty else { continue }
        let (share, guest) = (shares[pick(shares.count)], pick(guests.count))
        if model.guests[share]?.contains(guest) == true {
          log.append("guest \(guest) leaves \(share)")
          let left = try await guests[guest].modify(
            [.make(.forceDelete, share, recordType: nil)],
            in: .shared,
            zone: zone
          )
          #expect(left[0].error == nil, "seed \(seed): \(log)")
          model.guests[share]?.remove(guest)
        } else {
          log.append("guest \(guest) accepts \(share)")
          let record = try await owner.lookup(share)
          if try await !isInvited(guests[guest], record) {
            let people =
              (record.sharing?.participants ?? []) + [
                .invited(["bob", "cleo", "dan"][guest])
              ]
            try await owner.updateShare(record, participants: people)
          }
          try await guests[guest].accept(record)
          model.guests[share]?.insert(guest)
        }
      case 8:
        guard let name else { continue }
        log.append("delete \(name)")
        _ = try await owner.modify([.make(.forceDelete, name, recordType: nil)])[0].get()
        for share in model.shares.filter({ $0.value == name }).keys { model.shares[share] = nil }
        model.records[name] = nil
      default:
        let shares = model.shares.keys.sorted()
        guard !shares.isEmpty, pick(3) == 0 else { continue }
        let share = shares[pick(shares.count)]
        log.append("stop \(share)")
        _ = try await owner.modify([.make(.forceDelete, share, recordType: nil)])[0].get()
        model.shares[share] = nil
      }
      for guest in guests.indices where pick(3) == 0 {
        log.append("guest \(guest) syncs")
        try await replicas[guest].sync(guests[guest], zone, limit: 1 + pick(4))
        try await check(guest, guests[guest], replicas[guest], model, zone, seed, log)
      }
    }
    for guest in guests.indices {
      try await replicas[guest].sync(guests[guest], zone, limit: 2)
      try await check(guest, guests[guest], replicas[guest], model, zone, seed, log)
    }
  }

  private func isInvited(_ guest: Person, _ share: RecordDictionary) async throws -> Bool {
    let user = try await guest.userRecordName
    return share.sharing?.participants?.contains {
      $0.userIdentity?.userRecordName == user
    } ?? false
  }

  private func check(
    _ index: Int,
    _ guest: Person,
    _ replica: Replica,
    _ model: VisibilityModel,
    _ zone: ZoneID,
    _ seed: Int,
    _ log: [String]
  ) async throws {
    let visible = model.visible(to: index)
    #expect(
      Set(replica.records.keys) == visible,
      "seed \(seed), guest \(index): \(log.joined(separator: "; "))"
    )
    // Look-ups find the records in the feed, and no others.
    let names = model.records.keys.sorted() + model.shares.keys.sorted()
    guard !names.isEmpty else { return }
    let reply: RecordsResponse = try await guest.call(
      .lookupRecords,
      LookupRecordsRequest(
        records: names.map { LookupRecord(recordName: $0) },
        zoneID: zone
      ),
      in: .shared
    )
    for (name, result) in zip(names, reply.records) {
      #expect((result.item != nil) == visible.contains(name), "seed \(seed): \(name), \(log)")
      guard let item = result.item, let known = replica.records[name] else { continue }
      #expect(item.recordChangeTag == known.recordChangeTag, "seed \(seed): \(name)")
    }
  }
}
