import CloudKitWebServices
import Foundation
import Testing

@testable import CloudKitServer

/// Two servers on one database, simulated by one server that decides, and commits after another.
@Suite("Decisions that another server's commit made outdated", .everyEngine)
struct OvertakenDecisionTests {
  private let server: TestServer
  private let person: Person

  init() async throws {
    server = try await TestServer()
    person = try await server.person()
  }

  @Test("An update does not restore a record of the default zone that was deleted in between")
  func deleted() async throws {
    let saved = try await person.save(.create, "x", ["n": .int64(1)], zone: .defaultZone)
    let update = try await person.decide([
      .make(.update, "x", ["n": .int64(2)], tag: saved.recordChangeTag)
    ])
    try await person.save(.forceDelete, "x", zone: .defaultZone)
    #expect(throws: ExpectationFailed.self) { try server.service.storage.commit(update) }
    let error = await #expect(throws: ErrorDictionary.self) {
      try await person.lookup("x", zone: .defaultZone)
    }
    #expect(error?.serverErrorCode == .notFound)
  }

  @Test("A new reference to a record of the default zone that was deleted in between is refused")
  func dangling() async throws {
    try await person.save(.create, "x", zone: .defaultZone)
    let reference = FieldContent.reference(ReferenceValue(recordName: "x", action: .deleteSelf))
    let link = try await person.decide([.make(.create, "s", ["to": reference])])
    try await person.save(.forceDelete, "x", zone: .defaultZone)
    #expect(throws: ExpectationFailed.self) { try server.service.storage.commit(link) }
  }

  @Test("A reset of development refuses earlier decisions, also without custom zones")
  func reset() async throws {
    try await person.save(.create, "x", zone: .defaultZone)
    let update = try await person.decide([.make(.forceUpdate, "x", ["n": .int64(2)])])
    try await server.service.schemas.resetDevelopment(container: TestServer.container)
    #expect(throws: ExpectationFailed.self) { try server.service.storage.commit(update) }
  }

  @Test("Concurrent changes of name and password are both kept")
  func changesAtOnce() async throws {
    let service = server.service
    _ = try await server.person("ada")
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask {
        try await service.accounts.change("ada", .init(password: "a new password"))
      }
      for number in 0..<20 {
        group.addTask {
          try await service.accounts.change("ada", .init(givenName: "Ada \(number)"))
        }
      }
      try await group.waitForAll()
    }
    let account = try await service.passwords.check(
      userName: "ada",
      password: "a new password",
      from: nil
    )
    #expect(account.givenName?.hasPrefix("Ada ") == true)
    #expect(account.familyName == "Example")
  }
}
