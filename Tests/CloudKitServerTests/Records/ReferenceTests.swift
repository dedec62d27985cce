import CloudKitServer
import CloudKitWebServices
import Foundation
import Testing

@Suite("References between records", .everyEngine)
struct ReferenceTests {
  private func world() async throws -> Person {
    let person = try await TestServer().person()
    try await person.makeZone()
    return person
  }

  private func link(_ target: String, _ action: ReferenceAction) -> [String: FieldContent] {
    ["to": .reference(ReferenceValue(recordName: target, action: action))]
  }

  @Test(
    "A reference with an action needs its target, one without does not",
    arguments: [
      (ReferenceAction.none, nil), (.deleteSelf, ServerErrorCode.validatingReferenceError),
      (.validate, .validatingReferenceError),
    ]
  )
  func targetNeeded(action: ReferenceAction, code: ServerErrorCode?) async throws {
    let person = try await world()
    let lonely = try await person.modify([.make(.create, "a", link("b", action))])
    #expect(lonely[0].error?.serverErrorCode == code)
    // In one batch both orders are valid.
    let batch = [
      RecordOperation.make(.create, "c", link("d", action)), .make(.create, "d"),
    ]
    #expect(try await person.modify(batch).compactMap(\.error).isEmpty)
  }

  @Test("Deleting a target deletes records that refer to it with DELETE_SELF, recursively")
  func cascade() async throws {
    let person = try await world().extended
    _ = try await person.modify([
      .make(.create, "a"), .make(.create, "b", link("a", .deleteSelf)),
      .make(.create, "c", link("b", .deleteSelf)), .make(.create, "d", link("c", .none)),
    ])
    let token = try await person.changes().syncToken
    try await person.save(.forceDelete, "a")
    let changes = try await person.changes(since: token)
    #expect(Set(changes.names) == ["a", "b", "c"])
    #expect(changes.records.allSatisfy { $0.item?.deleted == true })
    #expect(try await person.lookup("d").recordName == "d")
  }

  @Test("A reference in a cycle is deleted once")
  func circle() async throws {
    let person = try await world()
    _ = try await person.modify([
      .make(.create, "a", link("b", .deleteSelf)), .make(.create, "b", link("a", .deleteSelf)),
    ])
    try await person.save(.forceDelete, "a")
    #expect(try await person.changes().names.isEmpty)
  }

  @Test("A record with a VALIDATE reference cannot be deleted before the reference")
  func validate() async throws {
    let person = try await world()
    _ = try await person.modify([.make(.create, "a"), .make(.create, "b", link("a", .validate))])
    let refused = try await person.modify([.make(.forceDelete, "a")])
    #expect(refused[0].error?.serverErrorCode == .validatingReferenceError)
    // Deleting both together is valid, and so is deleting after the reference changed.
    try await person.save(.forceUpdate, "b", ["to": .null])
    try await person.save(.forceDelete, "a")
    _ = try await person.modify([.make(.create, "a"), .make(.create, "c", link("a", .validate))])
    let both = try await person.modify([.make(.forceDelete, "a"), .make(.forceDelete, "c")])
    #expect(both.compactMap(\.error).isEmpty)
  }

  @Test("A failed deletion deletes nothing else")
  func failedDeletion() async throws {
    let person = try await world()
    _ = try await person.modify([
      .make(.create, "a"), .make(.create, "child", link("a", .deleteSelf)),
      .make(.create, "holder", link("a", .validate)),
    ])
    _ = try await person.modify([.make(.forceDelete, "a"), .make(.create, "x")], atomic: false)
    #expect(Set(try await person.changes().names) == ["a", "child", "holder", "x"])
  }

  @Test("A reference stays in its zone and has an action")
  func zoneAndAction() async throws {
    let person = try await world()
    try await person.makeZone("other")
    let away = ReferenceValue(
      recordName: "x",
      zoneID: ZoneID(zoneName: "other"),
      action: ReferenceAction.none
    )
    let silent = ReferenceValue(recordName: "x")
    for value in [away, silent] {
      let results = try await person.modify([.make(.create, "a", ["to": .reference(value)])])
      #expect(results[0].error?.serverErrorCode == .badRequest)
    }
  }

  @Test("A parent must exist")
  func parent() async throws {
    let person = try await world()
    let orphan = try await person.modify([.make(.create, "a", parent: "p")])
    #expect(orphan[0].error?.serverErrorCode == .validatingReferenceError)
    let family = try await person.modify([
      .make(.create, "a", parent: "p"), .make(.create, "p"),
    ])
    #expect(family[0].item?.parent?.recordName == "p")
  }

  @Test("A limited number of records may be deleted with one", arguments: [3, 4, 5])
  func referrerLimit(count: Int) async throws {
    let server = try await TestServer(limits: { $0.deleteSelfReferrers = 4 })
    let person = try await server.person()
    try await person.makeZone()
    try await person.save(.create, "a")
    for number in 0..<(count - 1) {
      try await person.save(.create, "r\(number)", link("a", .deleteSelf))
    }
    let last = try await person.modify([.make(.create, "last", link("a", .deleteSelf))])
    #expect(last[0].error?.serverErrorCode == (count > 4 ? .badRequest : nil))
  }

  @Test("A request's cascades delete a limited number of records in all", arguments: [3, 4, 5])
  func cascadeLimit(count: Int) async throws {
    let person = try await TestServer(limits: { $0.recordsPerCascade = 4 }).person().extended
    try await person.makeZone()
    try await person.save(.create, "n0")
    for index in 1...count {
      let target = ReferenceValue(recordName: "n\(index - 1)", action: .deleteSelf)
      try await person.save(.create, "n\(index)", ["r": .reference(target)])
    }
    if count <= 4 {
      try await person.save(.forceDelete, "n0")
    } else {
      let error = await #expect(throws: ErrorDictionary.self) {
        try await person.save(.forceDelete, "n0")
      }
      #expect(error?.extension?.code == .limitExceeded)
      #expect(try await person.lookup("n\(count)").recordName == "n\(count)")
    }
  }

  @Test("The last referrers of a batch with too many fail, or all if it is atomic")
  func referrerLimitInBatch() async throws {
    let server = try await TestServer(limits: { $0.deleteSelfReferrers = 4 })
    let person = try await server.person()
    try await person.makeZone()
    try await person.save(.create, "a")
    try await person.save(.create, "r0", link("a", .deleteSelf))
    let operations = (1...5).map {
      RecordOperation.make(.create, "r\($0)", link("a", .deleteSelf))
    }
    let refused = try await person.modify(operations, atomic: true)
    #expect(
      refused.map { $0.error?.serverErrorCode }
        == [.atomicError, .atomicError, .atomicError, .badRequest, .badRequest]
    )
    let kept = try await person.modify(operations, atomic: false)
    #expect(
      kept.map { $0.error?.serverErrorCode } == [nil, nil, nil, .badRequest, .badRequest]
    )
    // Saving one of them again adds none.
    let again = RecordOperation.make(.forceUpdate, "r1", link("a", .deleteSelf))
    #expect(try await person.modify([again])[0].error == nil)
  }

  @Test("In an atomic batch only the operation that failed by itself is blamed")
  func dependentsOfFailed() async throws {
    let person = try await world()
    let operations: [RecordOperation] = [
      .make(.update, "a", tag: "none"), .make(.create, "b", link("a", .deleteSelf)),
      .make(.create, "c", parent: "a"), .make(.create, "d"),
    ]
    let refused = try await person.modify(operations, atomic: true)
    #expect(
      refused.map { $0.error?.serverErrorCode }
        == [.notFound, .atomicError, .atomicError, .atomicError]
    )
    let some = try await person.modify(operations, atomic: false)
    #expect(
      some.map { $0.error?.serverErrorCode }
        == [.notFound, .validatingReferenceError, .validatingReferenceError, nil]
    )
    // A target that no operation would have saved is the fault of the operation.
    let missing = try await person.modify(
      [operations[0], .make(.create, "e", link("nowhere", .deleteSelf))],
      atomic: true
    )
    #expect(
      missing.map { $0.error?.serverErrorCode } == [.notFound, .validatingReferenceError]
    )
  }

  @Test("A save is refused if the same batch deletes its target with another record")
  func cascadedTarget() async throws {
    let person = try await world()
    _ = try await person.modify([
      .make(.create, "a"), .make(.create, "b", link("a", .deleteSelf)), .make(.create, "s"),
    ])
    let batch = [
      RecordOperation.make(.forceDelete, "a"), .make(.forceUpdate, "s", link("b", .deleteSelf)),
    ]
    let whole = try await person.modify(batch, atomic: true)
    #expect(whole[1].error?.serverErrorCode == .validatingReferenceError)
    #expect(try await person.lookup("b").recordName == "b")
    let results = try await person.modify(batch, atomic: false)
    #expect(results[1].error?.serverErrorCode == .validatingReferenceError)
    for name in ["a", "b"] {
      await #expect(throws: ErrorDictionary.self) { try await person.lookup(name) }
    }
    #expect(try await person.lookup("s").content("to") == nil)
  }

  @Test("A long chain of DELETE_SELF is deleted with its head")
  func longChain() async throws {
    let person = try await world()
    let names = (0..<600).map { "r\($0)" }
    for start in stride(from: 0, to: names.count, by: 200) {
      let batch = (start..<start + 200).map { index in
        RecordOperation.make(
          .create,
          names[index],
          index == 0 ? [:] : link(names[index - 1], .deleteSelf)
        )
      }
      #expect(try await person.modify(batch).compactMap(\.error).isEmpty)
    }
    let token = try await person.changes().syncToken
    try await person.save(.forceDelete, "r0")
    await #expect(throws: ErrorDictionary.self) { try await person.lookup("r599") }
    #expect(try await person.changes(since: token, limit: 200).records.count == 200)
  }
}
