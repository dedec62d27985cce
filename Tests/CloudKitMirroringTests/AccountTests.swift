import CloudKitMirroring
import CloudKitTesting
import Foundation
import OpenCoreData
import Testing
import WatershedSQLite

@Suite("Accounts that a store cannot be mirrored with")
struct AccountTests {
  private func reason(of phone: ScriptedDevice) async throws -> String {
    phone.mirror.accountMayHaveChanged()
    await #expect(throws: (any Error).self) { try await phone.mirror.syncNow() }
    let error = try #require(try phone.mirror.status().lastError) as NSError
    return error.localizedFailureReason ?? ""
  }

  @Test(
    "A token that the service refuses is named with its container, not called a missing account"
  )
  func refusedToken() async throws {
    let world = try await World()
    let phone = try await ScriptedDevice("phone", in: world)
    try await phone.sync()
    phone.cloud.setAccount(.none(reason: "The API token is not known."))
    let reason = try await reason(of: phone)
    #expect(reason.contains("The API token is not known."))
    #expect(reason.contains(TestCloud.defaultContainer))
    try await phone.quit()
  }

  @Test("A store that is loaded with another container is told apart from another person's")
  func otherContainer() async throws {
    let world = try await World()
    let phone = try await ScriptedDevice("phone", in: world)
    try await phone.sync()
    try phone.mirror.write(MirrorAuthor.setup) { session in
      try session.books.setMeta(.userRecordName, .text("_former"))
      try session.books.setMeta(.containerIdentifier, .text("iCloud.former"))
    }
    let reason = try await reason(of: phone)
    #expect(reason.contains("iCloud.former"))
    #expect(reason.contains(TestCloud.defaultContainer))
    try await phone.quit()
  }
}
