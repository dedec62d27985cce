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
      try $0.reply(in: id, user: user, device: device, sequence: number)
    } != nil
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
        sequence: 1,
        acknowledged: 0,
        finishedDevice: launch == 1 ? nil : "launch \(launch - 1)"
      )
      _ = try await person.modify([.make(.forceUpdate, "r\(launch)")], sequence: sequence)
    }
    #expect(try await isKept(person, "waiting"))
    #expect(try await !isKept(person, "launch 3"))
    #expect(try await isKept(person, "launch 4"))
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
}
