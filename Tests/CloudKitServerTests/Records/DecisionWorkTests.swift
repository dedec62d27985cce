import CloudKitWebServices
import Foundation
import Testing

@testable import CloudKitServer

/// The work of one `records/modify`, which other writes wait for, is in proportion to its request.
@Suite("The work of a decision", .everyEngine)
struct DecisionWorkTests {
  private func reference(_ target: String, _ action: ReferenceAction) -> ReferenceValue {
    ReferenceValue(recordName: target, action: action)
  }

  private func link(_ target: String, _ action: ReferenceAction) -> [String: FieldContent] {
    ["to": .reference(reference(target, action))]
  }

  @Test("A chain of saves whose end fails takes no attempt for each link")
  func chainOfSaves() async throws {
    let person = try await TestServer().person()
    try await person.save(.create, "kept", ["n": .int64(1)], zone: .defaultZone)
    var operations = (0..<20).map {
      RecordOperation.make(.create, "c\($0)", link("c\($0 + 1)", .validate))
    }
    operations[19] = .make(.create, "c19", link("missing", .validate))
    operations.append(.make(.forceUpdate, "kept", ["n": .int64(2)]))
    let plan = try await person.plan(operations)
    #expect(plan.attempts == 2)
    let results = try await person.modify(operations, zone: .defaultZone)
    #expect(
      results.prefix(20).allSatisfy { $0.error?.serverErrorCode == .validatingReferenceError }
    )
    #expect(results[0].error?.reason == "Reference to 'c1', which does not exist")
    #expect(results[20].item?.content("n") == .int64(2))
  }

  @Test("A failed save leaves references to the stored record valid")
  func storedTarget() async throws {
    let person = try await TestServer().person()
    try await person.save(.create, "t", zone: .defaultZone)
    let results = try await person.modify(
      [
        .make(.forceUpdate, "t", link("missing", .validate)),
        .make(.create, "s", link("t", .validate)),
      ],
      zone: .defaultZone
    )
    #expect(
      results.map { $0.error?.serverErrorCode } == [.validatingReferenceError, nil]
    )
  }

  @Test("A chain of deletions whose end is held takes no attempt for each link")
  func chainOfDeletions() async throws {
    let person = try await TestServer().person()
    for index in 0..<12 {
      let fields = index == 0 ? [:] : link("h\(index - 1)", .validate)
      try await person.save(.create, "h\(index)", fields, zone: .defaultZone)
    }
    try await person.save(.create, "holder", link("h11", .validate), zone: .defaultZone)
    let deletions = (0..<12).map { RecordOperation.make(.forceDelete, "h\($0)") }
    let plan = try await person.plan(deletions)
    #expect(plan.attempts == 2)
    let results = try await person.modify(deletions, zone: .defaultZone)
    #expect(results.allSatisfy { $0.error?.serverErrorCode == .validatingReferenceError })
    #expect(try await person.lookup("h0", zone: .defaultZone).recordName == "h0")
    // With the holder all of them go.
    let all = try await person.modify(
      deletions + [.make(.forceDelete, "holder")],
      zone: .defaultZone
    )
    #expect(all.compactMap(\.error).isEmpty)
  }

  @Test(
    "A batch whose failures follow from each other too often fails as a whole",
    arguments: [3, 16]
  )
  func attempts(limit: Int) async throws {
    let person = try await TestServer(limits: { $0.planningAttempts = limit }).person().extended
    for (name, target) in [("b", "a"), ("s1", "b"), ("s2", "s1"), ("s3", "s2"), ("s4", "s3")] {
      if target == "a" { try await person.save(.create, "a", zone: .defaultZone) }
      try await person.save(.create, name, link(target, .deleteSelf), zone: .defaultZone)
    }
    // The deletion takes each of them along whose save has failed, which fails the next one's.
    let operations =
      [RecordOperation.make(.forceDelete, "a")]
      + (1...4).map { .make(.forceUpdate, "s\($0)", ["n": .int64(1)]) }
    let results = try await person.modify(operations, zone: .defaultZone)
    let codes = results.map { $0.error?.extension?.code }
    #expect(codes.contains(.limitExceeded) == (limit == 3))
    if limit == 3 {
      #expect(results.allSatisfy { $0.error != nil })
      #expect(try await person.lookup("a", zone: .defaultZone).recordName == "a")
    } else {
      #expect(results[0].error == nil)
      #expect(
        results.dropFirst().allSatisfy { $0.error?.serverErrorCode == .validatingReferenceError }
      )
    }
  }

  @Test("References of saved records are examined a few times, for any number of deletions")
  func cascade() async throws {
    let person = try await TestServer().person()
    try await person.save(.create, "top", zone: .defaultZone)
    _ = try await person.modify(
      (0..<60).map { .make(.create, "d\($0)", link("top", .deleteSelf)) },
      zone: .defaultZone
    )
    let list = (0..<20).map { reference("other\($0)", .validate) }
    _ = try await person.modify(
      (0..<20).map { .make(.create, "other\($0)") },
      zone: .defaultZone
    )
    let saves = (0..<5).map {
      RecordOperation.make(.create, "s\($0)", ["list": .referenceList(list)])
    }
    let plan = try await person.plan(saves + [.make(.forceDelete, "top")])
    #expect(plan.deletedCount == 61)
    #expect(plan.examinedReferences <= 6 * 100)
  }

  @Test("A target that a list repeats is counted and checked once")
  func repeatedTarget() async throws {
    let server = try await TestServer(limits: { $0.deleteSelfReferrers = 4 })
    let person = try await server.person()
    try await person.save(.create, "t", zone: .defaultZone)
    for index in 0..<3 {
      try await person.save(.create, "r\(index)", link("t", .deleteSelf), zone: .defaultZone)
    }
    let list = Array(repeating: reference("t", .deleteSelf), count: 300)
    let operation = RecordOperation.make(.create, "last", ["list": .referenceList(list)])
    let plan = try await person.plan([operation])
    #expect(plan.examinedReferences <= 6 * 300)
    #expect(try await person.modify([operation], zone: .defaultZone)[0].error == nil)
    let refused = try await person.modify(
      [.make(.create, "more", ["list": .referenceList(list)])],
      zone: .defaultZone
    )
    #expect(refused[0].error?.serverErrorCode == .badRequest)
  }

  // MARK: What is read

  private let bulk = FieldContent.string(String(repeating: "x", count: 3000))

  @Test("A save does not read the records that refer to its target already")
  func referrers() async throws {
    let (server, count) = try await TestServer.counting()
    let person = try await server.person()
    for scope in [DatabaseScope.private, .public] {
      try await person.save(.create, "t", in: scope, zone: .defaultZone)
      for action in [ReferenceAction.validate, .deleteSelf] {
        for index in 0..<3 {
          var fields = link("t", action)
          fields["text"] = bulk
          let name = "\(action.rawValue.lowercased())\(index)"
          try await person.save(.create, name, fields, in: scope, zone: .defaultZone)
        }
      }
      count.reset()
      try await person.save(.create, "new", link("t", .validate), in: scope, zone: .defaultZone)
      #expect(count.fieldBytes < 1000)
      // Nor does a deletion read the fields of those that prevent it.
      count.reset()
      try await person.save(.forceDelete, "delete_self0", in: scope, zone: .defaultZone)
      #expect((3000..<6000).contains(count.fieldBytes))
      count.reset()
      let held = try await person.modify([.make(.forceDelete, "t")], in: scope, zone: .defaultZone)
      #expect(held[0].error?.serverErrorCode == .validatingReferenceError)
      // The two that would be deleted along.
      #expect(count.fieldBytes < 7000)
    }
  }

  @Test("The stored records that a request reads have a limit of bytes")
  func bytes() async throws {
    let server = try await TestServer(limits: { $0.bytesPerDecision = 10_000 })
    let person = try await server.person().extended
    for index in 0..<4 {
      try await person.save(.create, "r\(index)", ["text": bulk], zone: .defaultZone)
    }
    let list = (0..<4).map { reference("r\($0)", .validate) }
    let request = { (count: Int) in
      ModifyRecordsRequest(
        operations: [
          .make(.create, "s\(count)", ["list": .referenceList(Array(list.prefix(count)))])
        ],
        zoneID: .defaultZone
      )
    }
    let refused = try await person.failure(.modifyRecords, request(4))
    #expect(refused.extension?.code == .limitExceeded)
    let reply: RecordsResponse = try await person.call(.modifyRecords, request(3))
    #expect(reply.records[0].error == nil)
  }

  @Test("An update reads no targets of references without an action, and no missing one twice")
  func keptTargets() async throws {
    let (server, count) = try await TestServer.counting()
    let person = try await server.person()
    for index in 0..<20 {
      try await person.save(.create, "t\(index)", ["text": bulk], zone: .defaultZone)
    }
    let idle = (0..<20).map { reference("t\($0)", .none) }
    try await person.save(.create, "idle", ["list": .referenceList(idle)], zone: .defaultZone)
    count.reset()
    try await person.save(.forceUpdate, "idle", ["n": .int64(1)], zone: .defaultZone)
    #expect(count.fieldBytes < 3000)
    #expect(count.asked <= 2)
    // Two records that keep references to the same deleted ones, in the public database.
    let list = (0..<20).map { reference("t\($0)", .validate) }
    for name in ["a", "b"] {
      try await person.save(.create, name, ["list": .referenceList(list)], zone: .defaultZone)
    }
    count.reset()
    _ = try await person.modify(
      ["a", "b"].map { .make(.forceUpdate, $0, ["n": .int64(1)]) },
      zone: .defaultZone
    )
    #expect(count.asked <= 2 + 20)
  }

  @Test("Kept references have a limit of number in one request")
  func keptReferences() async throws {
    let server = try await TestServer(limits: { $0.linkedRowsPerRequest = 30 })
    let person = try await server.person().extended
    _ = try await person.modify((0..<20).map { .make(.create, "t\($0)") }, zone: .defaultZone)
    let list = (0..<20).map { reference("t\($0)", .validate) }
    for name in ["a", "b"] {
      try await person.save(.create, name, ["list": .referenceList(list)], zone: .defaultZone)
    }
    try await expectOneAtATime(person)
  }

  @Test("A list of references counts for the bytes of a decision as it is in memory")
  func decodedReferences() async throws {
    let server = try await TestServer(limits: { $0.bytesPerDecision = 40_000 })
    let person = try await server.person().extended
    let list = (0..<200).map { reference("t\($0)", .none) }
    for name in ["a", "b"] {
      try await person.save(.create, name, ["list": .referenceList(list)], zone: .defaultZone)
    }
    try await expectOneAtATime(person)
  }

  /// Expects that the records `a` and `b` can be updated, but not in one request.
  private func expectOneAtATime(_ person: Person) async throws {
    let both = try await person.failure(
      .modifyRecords,
      ModifyRecordsRequest(
        operations: ["a", "b"].map { .make(.forceUpdate, $0, ["n": .int64(1)]) },
        zoneID: .defaultZone
      )
    )
    #expect(both.extension?.code == .limitExceeded)
    try await person.save(.forceUpdate, "a", ["n": .int64(1)], zone: .defaultZone)
  }
}
