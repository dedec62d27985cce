import CloudKitServer
import CloudKitWebServices
import Foundation
import OpenCloudKit
import Synchronization
import Testing

@Suite("CKSyncEngine: accounts")
struct SyncEngineAccountTests {
  /// The state of an engine with ada signed in, with the zone on the service and one save pending.
  private func pendingState(
    _ service: RealService
  ) async throws -> CKSyncEngine.State.Serialization {
    let notes = SyncedNotes()
    let engine = notes.engine(on: try await service.device("one"))
    engine.state.add(pendingDatabaseChanges: [.saveZone(CKRecordZone(zoneID: SyncedNotes.zoneID))])
    try await engine.sendChanges()
    notes.write("a", "unsent", on: engine)
    try await engine.fetchChanges()
    return try #require(notes.serialization)
  }

  private static let refusals: [(Int, String)] = [
    (421, #"{"serverErrorCode":"AUTHENTICATION_REQUIRED","redirectURL":"http://sign.in"}"#),
    (401, #"{"serverErrorCode":"AUTHENTICATION_FAILED","reason":"unknown API token"}"#),
    (401, "<html>a proxy's page</html>"),
  ]

  @Test(
    "An engine whose credentials are refused keeps its pending changes and reports no sign-out",
    arguments: refusals
  )
  func refused(_ status: Int, _ body: String) async throws {
    let service = try await RealService()
    let state = try await pendingState(service)
    let notes = SyncedNotes()
    let container = try await service.device("one")
    service.intercept { _ in WebServiceResponse(status: status, body: Data(body.utf8)) }
    let engine = notes.engine(on: container, state: state)
    notes.change { $0.texts = ["a": "unsent"] }
    let error = await #expect(throws: CKError.self) { try await engine.sendChanges() }
    #expect(error?.code == .accountTemporarilyUnavailable)
    #expect(engine.state.pendingRecordZoneChanges.count == 1)
    #expect(notes.accountChanges.isEmpty)

    service.intercept(nil)
    try await engine.sendChanges()
    #expect(engine.state.pendingRecordZoneChanges.isEmpty)
    #expect(notes.accountChanges.isEmpty)
  }

  @Test("An engine that starts without a token keeps its pending changes for the same user")
  func withoutToken() async throws {
    let service = try await RealService()
    let state = try await pendingState(service)
    let notes = SyncedNotes()
    let container = try await service.device("one", of: nil)
    let engine = notes.engine(on: container, state: state)
    notes.change { $0.texts = ["a": "unsent"] }
    let error = await #expect(throws: CKError.self) { try await engine.sendChanges() }
    #expect(error?.code == .notAuthenticated)
    #expect(engine.state.pendingRecordZoneChanges.count == 1)
    try container.setWebAuthToken(
      try await service.service.signIn(userName: "ada", container: "iCloud.test")
    )
    try await engine.sendChanges()
    #expect(engine.state.pendingRecordZoneChanges.isEmpty)
    #expect(notes.accountChanges.isEmpty)
  }

  @Test(
    "A send that is under way when another user signs in writes nothing to that user's database"
  )
  func switchDuringSend() async throws {
    let service = try await RealService()
    let bobs = try await service.device("bob's", of: "bob")
    let bobsToken = try #require(try bobs.client().webAuthToken)
    let container = try await service.device("one")
    let notes = SyncedNotes()
    let engine = notes.engine(on: container)
    let zones = ["notes", "more"].map { CKRecordZone(zoneName: $0) }
    engine.state.add(pendingDatabaseChanges: zones.map { .saveZone($0) })
    try await engine.sendChanges()
    let other = CKRecord.ID(recordName: "b", zoneID: zones[1].zoneID)
    notes.write("a", "ada's", on: engine)
    notes.change { $0.texts["b"] = "ada's" }
    engine.state.add(pendingRecordZoneChanges: [.saveRecord(other)])

    let paths = Mutex<[String]>([])
    service.intercept { request in
      paths.withLock { $0.append(request.path) }
      guard request.path.contains("records/modify") else { return nil }
      // The other user signs in during the first of two requests.
      try? container.setWebAuthToken(bobsToken)
      return nil
    }
    let error = await #expect(throws: CKError.self) { try await engine.sendChanges() }
    #expect(error?.code == .accountTemporarilyUnavailable)
    let escaped = WebServicePath.escape(bobsToken)
    let written = paths.withLock { $0 }.filter { $0.contains("/modify") && $0.contains(escaped) }
    #expect(written.isEmpty)
    service.intercept(nil)
    #expect(try await bobs.privateCloudDatabase.allRecordZones().count == 1)

    // The next operation confirms the other user, whose state starts empty.
    try await engine.sendChanges()
    #expect(engine.state.pendingRecordZoneChanges.isEmpty)
    guard case .switchAccounts = notes.accountChanges.last else {
      Issue.record("The engine reported \(notes.accountChanges).")
      return
    }
  }

  @Test("An operation whose account changes between two of its requests fails")
  func switchDuringOperation() async throws {
    let service = try await RealService()
    let bobs = try await service.device("bob's", of: "bob")
    let bobsToken = try #require(try bobs.client().webAuthToken)
    let container = try await service.device("one")
    service.intercept { request in
      if request.path.contains("records/modify") { try? container.setWebAuthToken(bobsToken) }
      return nil
    }
    // More records than one request can hold.
    let records = (0..<300).map {
      CKRecord(recordType: "Note", recordID: CKRecord.ID(recordName: "n\($0)"))
    }
    let results = try await container.privateCloudDatabase.modifyRecords(
      saving: records,
      deleting: [],
      atomically: false
    )
    let failures = results.saveResults.values.compactMap { result -> CKError.Code? in
      guard case .failure(let error as CKError) = result else { return nil }
      return error.code
    }
    #expect(failures.count == 100)
    #expect(Set(failures) == [.accountTemporarilyUnavailable])
    service.intercept(nil)
    let found = try await bobs.privateCloudDatabase.records(for: records.map(\.recordID))
    #expect(found.values.allSatisfy { (try? $0.get()) == nil })
  }

  @Test("The service refuses a request that was made for another user and writes nothing")
  func expectedUser() async throws {
    let service = try await RealService()
    let container = try await service.device("one")
    let bobs = try await service.device("bob's", of: "bob")
    let ada = try await container.confirmedAccount()
    // Another process stores bob's tokens in the shared file: the sign-in is the same.
    service.intercept { request in
      guard let bob = try? bobs.client().webAuthToken, request.path.contains("zones/modify"),
        let own = try? container.client().webAuthToken
      else { return nil }
      var copy = request
      copy.path = request.path.replacingOccurrences(
        of: WebServicePath.escape(own),
        with: WebServicePath.escape(bob)
      )
      return await service.service.respond(to: copy)
    }
    let pinned = container.pinned(to: ada).privateCloudDatabase
    let error = await #expect(throws: CKError.self) {
      try await pinned.save(CKRecordZone(zoneName: "ada's"))
    }
    #expect(error?.code == .accountTemporarilyUnavailable)
    service.intercept(nil)
    #expect(try await bobs.privateCloudDatabase.allRecordZones().count == 1)
    // The service has to confirm the user again before the old pin is used.
    #expect(!container.isCurrent(ada))
    #expect(try await container.confirmedAccount().userRecordName == ada.userRecordName)
  }
}
