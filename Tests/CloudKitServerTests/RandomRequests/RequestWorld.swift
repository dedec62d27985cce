import CloudKitWebServices
import Effects
import Foundation
import Synchronization
import Testing
import WatershedPostgreSQL

@testable import CloudKitServer

/// Servers on one database, an owner with two devices and a guest with one, and the expected
/// contents of the database.
final class RequestWorld {
  /// The server's result contradicts the reference.
  struct Wrong: Error, CustomStringConvertible {
    var description: String
  }

  /// A sent batch, to be repeated.
  struct Sent {
    var device: Int
    var zone: String
    var operations: [ModelOperation]
    var isAtomic: Bool
    var sequence: ClientSequence
    var results: [ItemResult<RecordDictionary>]
  }

  /// A copy of the server's data and of the reference.
  private struct Copy {
    var folder: URL
    var zones: [String: ModelZone]
  }

  /// How often a server checks for another one's event before it counts as lost.
  private static let looks = 50_000

  static let zoneNames = ["a", "b"]
  static let owners = [0, 1]
  static let guest = 2

  private let folder: URL
  private let seed: UInt64
  private(set) var servers: [TestServer] = []
  private(set) var storages: [FlakyStorage] = []
  var devices: [RequestDevice] = []
  var zones: [String: ModelZone] = [:]
  var staleTags: [String] = ["none"]
  var last: Sent?
  private var copy: Copy?
  /// Reads which events PostgreSQL still hides.
  private var observer: PostgreSQLConnection?
  /// Counts of the program, for the report of a run.
  var counts: [String: Int] = [:]
  private var starts: UInt64 = 0

  init(folder: URL, serverCount: Int, seed: UInt64) async throws {
    self.folder = folder
    self.seed = seed
    for _ in 0..<serverCount { try await start() }
    let ada = try await servers[0].person("ada").extended
    let bob = try await servers[0].person("bob").extended
    let owner = try await ada.userRecordName
    devices = [
      try await RequestDevice(ada.on("phone"), in: .private, owner: nil),
      try await RequestDevice(ada.on("tablet"), in: .private, owner: nil),
      try await RequestDevice(bob.on("laptop"), in: .shared, owner: owner),
    ]
    for device in devices { while try await device.listener.next() != nil {} }
  }

  /// Starts another server on the data.
  private func start() async throws {
    starts += 1
    let made = Mutex<FlakyStorage?>(nil)
    let server = try await TestServer(
      folder: folder,
      seed: seed &+ starts,
      limits: { $0.longPollTimeout = 0 },
      storage: { base in
        let flaky = FlakyStorage(base)
        made.withLock { $0 = flaky }
        return flaky
      }
    )
    servers.append(server)
    storages.append(try #require(made.withLock { $0 }))
  }

  func shutdown() async { for server in servers { await server.service.shutdown() } }

  // MARK: Zones

  func makeZone(_ name: String, by device: Int) async throws {
    try await devices[device].person.makeZone(name)
    let isNew = zones[name] == nil
    if isNew { zones[name] = ModelZone() }
    try await checkNotifications(from: device, owner: isNew, guest: false)
  }

  func deleteZone(_ name: String, by device: Int) async throws {
    let hadGuest = zones[name]?.shares.values.contains(where: \.isJoined) ?? false
    do {
      try await devices[device].person.deleteZone(name)
      try require(zones[name] != nil, "the zone \(name) was not there to delete")
    } catch let error as ErrorDictionary {
      try require(zones[name] == nil && error.serverErrorCode == .zoneNotFound, "\(error)")
    }
    let isGone = zones.removeValue(forKey: name) != nil
    try await checkNotifications(from: device, owner: isGone, guest: hadGuest)
  }

  // MARK: Servers

  /// Connects a device to another server of the database.
  func move(_ device: Int, to server: Int) { devices[device].use(servers[server]) }

  /// Stops the only server, keeps or restores a copy of its data, and starts it again.
  func restart(keepingCopy: Bool, puttingBack: Bool) async throws {
    await shutdown()
    let isBack = puttingBack && copy != nil
    counts[isBack ? "put back" : "restart", default: 0] += 1
    if let copy, isBack {
      try FileManager.default.removeItem(at: folder)
      try FileManager.default.copyItem(at: copy.folder, to: folder)
      zones = copy.zones
      last = nil
    }
    if keepingCopy {
      let place = folder.appendingPathExtension("copy")
      try? FileManager.default.removeItem(at: place)
      try FileManager.default.copyItem(at: folder, to: place)
      copy = Copy(folder: place, zones: zones)
    }
    (servers, storages) = ([], [])
    try await start()
    // Like `watershed server new-incarnation`, which the page on restoring requires.
    if isBack { try servers[0].service.storage.branchOff() }
    for index in devices.indices {
      devices[index].use(servers[0])
      devices[index].listener.server = servers[0]
    }
    try await checkNotifications(from: nil, owner: nil, guest: nil)
  }

  func removeCopy() { if let copy { try? FileManager.default.removeItem(at: copy.folder) } }

  // MARK: Comparing

  /// Compares a query with the reference.
  func query(_ number: Int64, in zone: String) async throws {
    let query = RecordQuery(
      recordType: "Note",
      filterBy: [
        QueryFilter(comparator: .equals, fieldName: "n", fieldValue: FieldValue(.int64(number)))
      ]
    )
    guard let model = zones[zone] else { return }
    var names: [String] = []
    var marker: String?
    do {
      repeat {
        let page = try await devices[0].person.query(
          query,
          zone: ZoneID(zoneName: zone),
          limit: 2,
          marker: marker
        )
        names += page.names
        marker = page.continuationMarker
      } while marker != nil
    } catch let error as ErrorDictionary {
      // No record has created the type yet.
      try require(error.serverErrorCode == .notFound, "a query failed: \(error)")
    }
    let due = model.records.filter { $0.value.number == number }.keys.sorted()
    try require(names.sorted() == due, "a query found \(names.sorted()) instead of \(due)")
  }

  /// Reads feeds; a device that has read all of them has the visible records.
  func catchUp(_ device: Int, pages: Int, limit: Int) async throws {
    guard try await devices[device].catchUp(pages: pages, limit: limit) else { return }
    counts["compared", default: 0] += 1
    var due: [String: RequestDevice.Replica] = [:]
    for (name, zone) in zones {
      if device == Self.guest {
        let joined = zone.shares.filter(\.value.isJoined)
        guard !joined.isEmpty else { continue }
        due[name] = RequestDevice.Replica(
          records: zone.visibleToGuest,
          shares: Set(joined.keys)
        )
      } else {
        due[name] = RequestDevice.Replica(records: zone.records, shares: Set(zone.shares.keys))
      }
    }
    let held = devices[device].replicas.mapValues { replica in
      RequestDevice.Replica(records: replica.records, shares: replica.shares)
    }
    try require(held == due, "device \(device) holds \(held), and should \(due)")
  }

  /// Checks that every other device of the database is notified of a commit once; nil: unspecified.
  func checkNotifications(from author: Int?, owner: Bool?, guest: Bool?) async throws {
    try await checkNotifications(
      devices.indices.map { index in
        index == author ? false : index == Self.guest ? guest : owner
      },
      isGuestsCommit: author == Self.guest
    )
  }

  /// Waits until PostgreSQL shows the events of all commits.
  ///
  /// It does when all earlier transactions have ended, those of other tests too. An event that is
  /// hidden now would be delivered in a later step, in which it is not expected.
  private func waitForEvents() async throws {
    guard servers.count > 1, let url = TestEngine.knownURL(for: folder) else { return }
    let connection = try observer ?? PostgreSQLConnection(url: url)
    observer = connection
    let events = SQLEvents(session: PostgreSQLSession(connection: connection))
    while try events.hasUnsettled() { await Task.yield() }
  }

  /// Checks that each device is notified once if it is due, and not otherwise.
  func checkNotifications(_ due: [Bool?], isGuestsCommit: Bool = false) async throws {
    try await waitForEvents()
    for (index, device) in devices.enumerated() {
      let due = due[index]
      var count = 0
      var looks = 0
      repeat {
        looks += 1
        // Concurrent notifications are merged: pending ones are delivered before events are
        // checked.
        while try await device.listener.next() != nil { count += 1 }
        try await device.listener.server.service.delivery.deliverEvents()
        while try await device.listener.next() != nil { count += 1 }
        // Another server's event is visible after earlier transactions have ended.
      } while due == true && count == 0 && servers.count > 1 && looks < Self.looks
      counts["notified", default: 0] += count
      if due == false, index == Self.guest, !isGuestsCommit {
        // A commit in a share's tree may contain nothing new for the guest.
        try require(count <= 1, "device \(index) was notified \(count) times")
      } else if let due {
        try require(count == (due ? 1 : 0), "device \(index) was notified \(count) times")
      }
    }
  }

  func require(_ condition: Bool, _ description: @autoclosure () -> String) throws {
    if !condition { throw Wrong(description: description()) }
  }
}
