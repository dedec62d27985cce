import CloudKitServer
import CloudKitWebServices
import Foundation
import Testing

/// In the public database any user may refer to any record: a user still deletes their own records.
@Suite("Deletions in the public database", .everyEngine)
struct PublicDeletionTests {
  private func link(_ target: String, _ action: ReferenceAction) -> [String: FieldContent] {
    ["to": .reference(ReferenceValue(recordName: target, action: action))]
  }

  private func exists(_ name: String, _ person: Person) async throws -> Bool {
    do {
      _ = try await person.lookup(name, in: .public, zone: nil)
      return true
    } catch let error as ErrorDictionary where error.serverErrorCode == .notFound {
      return false
    }
  }

  private func make(
    _ name: String,
    _ fields: [String: FieldContent] = [:],
    by person: Person
  ) async throws {
    try await person.save(.create, name, fields, in: .public, zone: nil)
  }

  private func delete(_ name: String, by person: Person) async throws -> ErrorDictionary? {
    let results = try await person.extended.modify(
      [.make(.forceDelete, name)],
      in: .public,
      zone: nil
    )
    return results[0].error
  }

  @Test("A stranger's record that would be deleted along is held by no other record of theirs")
  func heldBelow() async throws {
    let server = try await TestServer()
    let (owner, stranger) = (try await server.person("ada"), try await server.person("mallory"))
    try await make("v", by: owner)
    try await make("a", link("v", .deleteSelf), by: stranger)
    try await make("b", link("a", .validate), by: stranger)
    #expect(try await delete("v", by: owner) == nil)
    #expect(try await !exists("v", owner))
    #expect(try await !exists("a", owner))
    #expect(try await exists("b", owner))
  }

  @Test("A user's own record still holds what would be deleted along")
  func ownHolder() async throws {
    let server = try await TestServer()
    let (owner, stranger) = (try await server.person("ada"), try await server.person("mallory"))
    try await make("v", by: owner)
    try await make("a", link("v", .deleteSelf), by: stranger)
    try await make("b", link("a", .validate), by: owner)
    #expect(try await delete("v", by: owner)?.serverErrorCode == .validatingReferenceError)
    #expect(try await exists("a", owner))
  }

  @Test("More of a stranger's records than a cascade takes stay, and the deletion succeeds")
  func cascadeOfStrangers() async throws {
    let server = try await TestServer(limits: { $0.recordsPerCascade = 4 })
    let (owner, stranger) = (try await server.person("ada"), try await server.person("mallory"))
    try await make("v", by: owner)
    for index in 0..<3 { try await make("m\(index)", link("v", .deleteSelf), by: stranger) }
    for index in 3..<6 { try await make("m\(index)", link("m0", .deleteSelf), by: stranger) }
    try await make("own", link("v", .deleteSelf), by: owner)
    #expect(try await delete("v", by: owner) == nil)
    #expect(try await !exists("own", owner))
    var left = 0
    for index in 0..<6 where try await exists("m\(index)", owner) { left += 1 }
    // Four go in all, with the owner's own.
    #expect(left == 3)
  }

  @Test("A user's own cascade has the limit of a cascade")
  func cascadeOfOwn() async throws {
    let server = try await TestServer(limits: { $0.recordsPerCascade = 2 })
    let owner = try await server.person("ada")
    try await make("v", by: owner)
    for index in 0..<3 { try await make("o\(index)", link("v", .deleteSelf), by: owner) }
    let request = ModifyRecordsRequest(operations: [.make(.forceDelete, "v")])
    let refused = try await owner.extended.failure(.modifyRecords, request, in: .public)
    #expect(refused.extension?.code == .limitExceeded)
    #expect(try await exists("v", owner))
  }

  @Test("A flood of references hides no reference of the record's own creator")
  func flood() async throws {
    let server = try await TestServer(limits: { $0.recordsPerCascade = 2 })
    let (owner, stranger) = (try await server.person("ada"), try await server.person("mallory"))
    try await make("v", by: owner)
    _ = try await stranger.modify(
      (0..<30).map { .make(.create, "m\($0)", link("v", .validate)) },
      in: .public,
      zone: nil
    )
    try await make("z", link("v", .validate), by: owner)
    #expect(try await delete("v", by: owner)?.serverErrorCode == .validatingReferenceError)
    try await owner.save(.forceDelete, "z", in: .public, zone: nil)
    #expect(try await delete("v", by: owner) == nil)
  }

  @Test("One user's references leave places for those of others")
  func places() async throws {
    let server = try await TestServer(limits: { $0.deleteSelfReferrers = 2 })
    let (owner, stranger) = (try await server.person("ada"), try await server.person("mallory"))
    try await make("v", by: owner)
    for index in 0..<2 { try await make("m\(index)", link("v", .deleteSelf), by: stranger) }
    try await make("o", link("v", .deleteSelf), by: owner)
    #expect(try await delete("v", by: owner) == nil)
    #expect(try await !exists("m1", owner))
  }
}
