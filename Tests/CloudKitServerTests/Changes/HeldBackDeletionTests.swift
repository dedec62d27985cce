import CloudKitServer
import CloudKitWebServices
import Foundation
import Testing

@Suite("Deletions that a VALIDATE reference prevents", .everyEngine)
struct HeldBackDeletionTests {
  private func link(_ target: String, _ action: ReferenceAction) -> [String: FieldContent] {
    ["to": .reference(ReferenceValue(recordName: target, action: action))]
  }

  @Test("A cascade does not delete a record that another one validates")
  func heldInTheMiddle() async throws {
    let person = try await TestServer().person()
    try await person.makeZone()
    _ = try await person.modify([
      .make(.create, "a"), .make(.create, "b", link("a", .deleteSelf)),
      .make(.create, "c", link("b", .validate)),
    ])
    for atomic in [true, false] {
      let refused = try await person.modify([.make(.forceDelete, "a")], atomic: atomic)
      #expect(refused[0].error?.serverErrorCode == .validatingReferenceError)
    }
    _ = try await person.lookup("a")
    _ = try await person.lookup("b")
    // It can be deleted together with the referring record.
    let gone = try await person.modify([.make(.forceDelete, "c"), .make(.forceDelete, "a")])
    #expect(gone.compactMap(\.error).isEmpty)
    await #expect(throws: ErrorDictionary.self) { try await person.lookup("b") }
  }

  @Test("A save that fails because of its deleted target does not prevent the deletion")
  func failedSave() async throws {
    let person = try await TestServer().person()
    try await person.makeZone()
    try await person.save(.create, "a")
    let results = try await person.modify(
      [.make(.forceDelete, "a"), .make(.create, "b", link("a", .validate))],
      atomic: false
    )
    #expect(results[0].error == nil)
    #expect(results[1].error?.serverErrorCode == .validatingReferenceError)
    await #expect(throws: ErrorDictionary.self) { try await person.lookup("a") }
  }
}
