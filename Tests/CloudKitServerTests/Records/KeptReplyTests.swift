import CloudKitWebServices
import Foundation
import Testing

@testable import CloudKitServer

/// How long replies are kept for repeated batches, and for how many devices.
@Suite("Kept replies", .everyEngine)
struct KeptReplyTests {
  private func send(_ person: Person, _ device: String, _ number: Int64 = 1) async throws {
    let sequence = ClientSequence(device: device, sequence: number, acknowledged: 0)
    let results = try await person.modify(
      [.make(.forceUpdate, "\(device)-\(number)")],
      sequence: sequence
    )
    #expect(results[0].error == nil)
  }

  private func isKept(_ person: Person, _ device: String, _ number: Int64 = 1) async throws -> Bool
  {
    let storage = person.server.service.storage
    let user = try await person.userRecordName
    let id = try storage.partition(
      PartitionKey(
        container: TestServer.container,
        environment: .development,
        scope: .private,
        owner: user
      )
    )
    return try storage.read {
      try $0.reply(in: id, user: user, device: device, from: number)
    }?.sequence == number
  }

  @Test("A reply goes when its time is over, at the next batch or the next tidying")
  func expiry() async throws {
    let person = try await TestServer(limits: { $0.replyLifetime = 86_400 }).person().extended
    try await person.makeZone()
    try await send(person, "old")
    person.server.clock.advance(seconds: 23 * 3600)
    try await person.server.service.collectTraces()
    #expect(try await isKept(person, "old"))
    person.server.clock.advance(seconds: 2 * 3600)
    try await send(person, "new")
    #expect(try await !isKept(person, "old"))
    #expect(try await isKept(person, "new"))
    person.server.clock.advance(seconds: 25 * 3600)
    try await person.server.service.collectTraces()
    #expect(try await !isKept(person, "new"))
  }

  @Test("The replies of a device that its successor names as finished displace no other device's")
  func finishedDevice() async throws {
    let person = try await TestServer(limits: { $0.sequenceDevices = 2 }).person().extended
    try await person.makeZone()
    try await send(person, "waiting")
    for launch in 1...4 {
      person.server.clock.advance(seconds: 1)
      let sequence = ClientSequence(
        device: "launch \(launch)",
        sequence: Int64(launch),
        acknowledged: Int64(launch) - 1,
        finishedDevice: launch == 1 ? nil : "launch \(launch - 1)"
      )
      _ = try await person.modify([.make(.forceUpdate, "r\(launch)")], sequence: sequence)
    }
    #expect(try await isKept(person, "waiting"))
    #expect(try await !isKept(person, "launch 3", 3))
    #expect(try await isKept(person, "launch 4", 4))
  }

  private func succeed(_ person: Person, _ former: String, acknowledged: Int64) async throws {
    let sequence = ClientSequence(
      device: "successor of \(former)",
      sequence: acknowledged + 1,
      acknowledged: acknowledged,
      finishedDevice: former
    )
    _ = try await person.modify([.make(.forceUpdate, "of \(former)")], sequence: sequence)
  }

  @Test("The reply of a finished device is kept for a limited time, for backups")
  func finishedForLong() async throws {
    let day = 86_400.0
    let person = try await TestServer(limits: { $0.finishedReplyLifetime = 10 * day }).person()
      .extended
    try await person.makeZone()
    try await send(person, "finished")
    try await succeed(person, "finished", acknowledged: 1)
    person.server.clock.advance(seconds: 9 * day)
    try await person.server.service.collectTraces()
    #expect(try await isKept(person, "finished"))
    person.server.clock.advance(seconds: 2 * day)
    try await person.server.service.collectTraces()
    #expect(try await !isKept(person, "finished"))
    #expect(try await isKept(person, "successor of finished", 2))
  }

  @Test("A device that a copy of its store continues is not finished by the other copy")
  func continuedDevice() async throws {
    let day = 86_400.0
    let person = try await TestServer(limits: { $0.finishedReplyLifetime = 10 * day }).person()
      .extended
    try await person.makeZone()
    try await send(person, "continued", 7)
    try await send(person, "continued", 8)
    try await succeed(person, "continued", acknowledged: 7)
    person.server.clock.advance(seconds: 11 * day)
    try await person.server.service.collectTraces()
    #expect(try await isKept(person, "continued", 8))
  }

  @Test("A finished device that sends again is kept as before")
  func finishedTooEarly() async throws {
    let day = 86_400.0
    let person = try await TestServer(limits: { $0.finishedReplyLifetime = 10 * day }).person()
      .extended
    try await person.makeZone()
    try await send(person, "early", 1)
    try await succeed(person, "early", acknowledged: 1)
    try await send(person, "early", 2)
    person.server.clock.advance(seconds: 11 * day)
    try await person.server.service.collectTraces()
    #expect(try await isKept(person, "early", 2))
  }

  @Test(
    "Replies of a limited number of devices are kept; the least recently used is removed first",
    arguments: [-1, 0, 1]
  )
  func devices(over: Int) async throws {
    let person = try await TestServer(limits: { $0.sequenceDevices = 4 }).person().extended
    try await person.makeZone()
    for round in 1...2 {
      for index in 0..<(4 + over) {
        try await send(person, "d\(index)", Int64(round))
        person.server.clock.advance(seconds: 1)
      }
    }
    var kept = 0
    for index in 0..<(4 + over) where try await isKept(person, "d\(index)", 2) { kept += 1 }
    #expect(kept == min(4, 4 + over))
    #expect(try await isKept(person, "d0", 2) == (over <= 0))
    // A device that writes at least hourly is kept.
    #expect(try await isKept(person, "d\(3 + over)", 2))
  }

  @Test("A repetition of the batch that filled a database gets its reply")
  func filledDatabase() async throws {
    let person = try await TestServer(limits: { $0.userQuota = 60_000 }).person().extended
    try await person.makeZone()
    let sequence = ClientSequence(device: "phone", sequence: 1, acknowledged: 0)
    let text = String(repeating: "x", count: 80_000)
    let operations = [RecordOperation.make(.create, "a", ["text": .string(text)])]
    let first = try await person.modify(operations, sequence: sequence)
    person.server.clock.advance(seconds: 61)
    let failure = await #expect(throws: ErrorDictionary.self) {
      _ = try await person.modify([.make(.create, "b")])
    }
    #expect(failure?.serverErrorCode == .quotaExceeded)
    let again = try await person.modify(operations, sequence: sequence)
    #expect(again[0].item?.recordChangeTag == first[0].item?.recordChangeTag)
    #expect(again[0].error == nil)
  }
}
