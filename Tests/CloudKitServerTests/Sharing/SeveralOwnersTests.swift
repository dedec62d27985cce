import CloudKitWebServices
import Foundation
import Testing

@testable import CloudKitServer

@Suite("Requests on zones of several owners", .everyEngine)
struct SeveralOwnersTests {
  /// Two owners who share a zone of the same name with a third user, who may write.
  private struct World {
    var owners: [Person] = []
    var zones: [ZoneID] = []
    var guest: Person

    init(limits: (inout ServiceLimits) -> Void = { _ in }) async throws {
      let server = try await TestServer(limits: limits)
      guest = try await server.person("guest")
      for name in ["ada", "bob"] {
        let owner = try await server.person(name)
        try await owner.makeZone()
        try await owner.save(.create, "theirs")
        let share = try await owner.share(nil, publicPermission: .readWrite)
        try await guest.accept(share)
        owners.append(owner)
        zones.append(ZoneID(zoneName: "notes", ownerRecordName: try await owner.userRecordName))
      }
    }

    func create(_ name: String, _ owner: Int) -> RecordOperation {
      var operation = RecordOperation.make(.create, name, ["n": .int64(Int64(owner))])
      operation.record.zoneID = zones[owner]
      return operation
    }
  }

  @Test("Each record is saved for its owner, and the reply has the order of the request")
  func saves() async throws {
    let world = try await World()
    let operations = [
      world.create("a", 0), world.create("b", 1), world.create("c", 0), world.create("a", 1),
    ]
    let items = try await world.guest.modify(operations, in: .shared, zone: nil)
    let saved = try items.map { try $0.get() }
    #expect(saved.map(\.recordName) == ["a", "b", "c", "a"])
    #expect(
      saved.map { $0.zoneID?.ownerRecordName }
        == [0, 1, 0, 1].map { world.zones[$0].ownerRecordName }
    )
    #expect(saved.map { $0.content("n") } == [0, 1, 0, 1].map { .int64($0) })
    #expect(try await world.owners[0].lookup("c").recordName == "c")
    await #expect(throws: ErrorDictionary.self) { try await world.owners[1].lookup("c") }
  }

  @Test("Atomicity applies per owner")
  func atomic() async throws {
    let world = try await World()
    let items = try await world.guest.modify(
      [world.create("a", 0), world.create("theirs", 1), world.create("b", 1)],
      in: .shared,
      zone: nil,
      atomic: true
    )
    #expect(items[0].item?.recordName == "a")
    #expect(items[1].error?.serverErrorCode == .conflict)
    #expect(items[1].error?.recordName == "theirs")
    #expect(items[2].error?.serverErrorCode == .atomicError)
    #expect(try await world.owners[0].lookup("a").recordName == "a")
    await #expect(throws: ErrorDictionary.self) { try await world.owners[1].lookup("b") }
  }

  @Test("Operations on an owner who shares nothing fail alone")
  func stranger() async throws {
    let world = try await World()
    var stray = world.create("x", 0)
    stray.record.zoneID = ZoneID(zoneName: "notes", ownerRecordName: "_stranger")
    let items = try await world.guest.modify(
      [stray, world.create("a", 1)],
      in: .shared,
      zone: nil
    )
    #expect(items[0].error?.serverErrorCode == .zoneNotFound)
    #expect(items[1].item?.recordName == "a")
  }

  @Test("A repeated batch gets the kept reply of every owner")
  func replay() async throws {
    let world = try await World()
    let guest = world.guest.extended
    let sequence = ClientSequence(device: "d", sequence: 1, acknowledged: 0)
    let operations = [world.create("a", 0), world.create("b", 1)]
    func send() async throws -> [ItemResult<RecordDictionary>] {
      try await guest.modify(operations, in: .shared, zone: nil, sequence: sequence)
    }
    let first = try await send()
    #expect(first.allSatisfy { $0.error == nil })
    #expect(try await send() == first)
  }

  @Test("Records of the same name of two owners are two records in a request")
  func oneOperationPerRecord() async throws {
    let world = try await World()
    await #expect(throws: ErrorDictionary.self) {
      try await world.guest.modify(
        [world.create("a", 0), world.create("a", 0)],
        in: .shared,
        zone: nil
      )
    }
    let items = try await world.guest.modify(
      [world.create("a", 0), world.create("a", 1)],
      in: .shared,
      zone: nil
    )
    #expect(items.allSatisfy { $0.error == nil })
  }
  @Test("The reply about all owners' records has a limited size, and what exceeds it is not saved")
  func replySize() async throws {
    let world = try await World(limits: { $0.bytesPerReply = 5000 })
    let text = FieldContent.string(String(repeating: "x", count: 3000))
    for (index, owner) in world.owners.enumerated() {
      try await owner.save(.create, "large", ["t": text, "n": .int64(Int64(index))])
    }
    func touch(_ owner: Int) -> RecordOperation {
      var operation = world.create("large", owner)
      operation.operationType = .forceUpdate
      operation.record.fields = ["n": FieldValue(.int64(7))]
      return operation
    }
    let items = try await world.guest.extended.modify(
      [touch(0), touch(1)],
      in: .shared,
      zone: nil
    )
    #expect(items[0].item?.content("n") == .int64(7))
    #expect(items[1].error?.extension?.code == .limitExceeded)
    #expect(try await world.owners[1].lookup("large").content("n") == .int64(1))
    // Alone it fits.
    let alone = try await world.guest.modify([touch(1)], in: .shared, zone: nil)
    #expect(alone[0].item?.content("n") == .int64(7))
  }

  @Test("The parts of a reply are cut out as they were written")
  func members() throws {
    let json =
      #"{"a":{"records":[1]},"records":[{"x":"}],\"{[\\"},"#
      + #"[2,{"y":[]}],"s",null,-1.5],"z":3}"#
    let found = try JSONMembers(of: Data(json.utf8)).elements(of: "records")
    #expect(
      found.map { String(decoding: $0, as: UTF8.self) } == [
        #"{"x":"}],\"{[\\"}"#, #"[2,{"y":[]}]"#, #""s""#, "null", "-1.5",
      ]
    )
    #expect(try JSONMembers(of: Data(#"{"records":[],"a":1}"#.utf8)).elements(of: "records") == [])
    #expect(try JSONMembers(of: Data(#"{"a":[1]}"#.utf8)).elements(of: "records") == [])
    #expect(throws: JSONMembers.Malformed.self) {
      try JSONMembers(of: Data(#"{"records":[1"#.utf8)).elements(of: "records")
    }
  }
}
