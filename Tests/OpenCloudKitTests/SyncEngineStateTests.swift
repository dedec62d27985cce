import Foundation
import OpenCloudKit
import Testing

@Suite("SyncEngineState")
struct SyncEngineStateTests {
  private let zoneA = CKRecordZone.ID(zoneName: "a")
  private let zoneB = CKRecordZone.ID(zoneName: "b")
  private let ada = CKRecord.ID(recordName: "_ada")
  private let bob = CKRecord.ID(recordName: "_bob")

  private func record(_ name: String) -> CKRecord.ID {
    CKRecord.ID(recordName: name, zoneID: zoneA)
  }

  @Test("A later change of a record replaces the earlier one and moves to the end")
  func laterCounts() {
    var state = SyncEngineState()
    state.recordChanges.add([.saveRecord(record("1")), .saveRecord(record("2"))])
    state.recordChanges.add([.deleteRecord(record("1"))])
    #expect(
      state.recordChanges.changes == [.saveRecord(record("2")), .deleteRecord(record("1"))]
    )
    state.databaseChanges.add([.saveZone(CKRecordZone(zoneID: zoneA)), .deleteZone(zoneA)])
    #expect(state.databaseChanges.changes == [.deleteZone(zoneA)])
  }

  @Test("Adding the same change again keeps its position and does not duplicate it")
  func sameAgain() {
    var state = SyncEngineState()
    state.recordChanges.add([.saveRecord(record("1")), .saveRecord(record("2"))])
    state.recordChanges.add([.saveRecord(record("1"))])
    #expect(state.recordChanges.changes == [.saveRecord(record("1")), .saveRecord(record("2"))])
  }

  @Test("Removing a save leaves a delete of the same record")
  func removal() {
    var state = SyncEngineState()
    state.recordChanges.add([.deleteRecord(record("1"))])
    state.recordChanges.remove([.saveRecord(record("1"))])
    #expect(state.recordChanges.changes == [.deleteRecord(record("1"))])
    state.recordChanges.remove([.deleteRecord(record("1"))])
    #expect(state.recordChanges.isEmpty)
  }

  @Test("A change added again while it is being sent stays pending after the send succeeds")
  func addedUnderWay() {
    var state = SyncEngineState()
    state.recordChanges.add([.saveRecord(record("1")), .saveRecord(record("2"))])
    let marks = state.recordChanges.marks(of: state.recordChanges.changes)
    state.recordChanges.add([.saveRecord(record("2"))])
    for mark in marks { state.recordChanges.settle(mark) }
    #expect(state.recordChanges.changes == [.saveRecord(record("2"))])
  }

  @Test("The first user keeps added changes; a sign-out or switch resets the state")
  func accounts() {
    var state = SyncEngineState()
    state.recordChanges.add([.saveRecord(record("1"))])
    state.databaseToken = "t"
    #expect(state.signIn(ada) == .signIn(currentUser: ada))
    #expect(state.recordChanges.changes.count == 1)
    #expect(state.signIn(ada) == nil)
    #expect(state.signIn(bob) == .switchAccounts(previousUser: ada, currentUser: bob))
    #expect(state.recordChanges.isEmpty)
    #expect(state.databaseToken == nil)
    state.databaseChanges.add([.deleteZone(zoneA)])
    #expect(state.signIn(nil) == .signOut(previousUser: bob))
    #expect(state.databaseChanges.isEmpty)
    #expect(state.signIn(nil) == nil)
  }

  @Test("Zones are fetched in the order of their notification, after the prioritized ones")
  func nextZone() {
    var state = SyncEngineState()
    state.didFetch(changed: [zoneA, zoneB, zoneA], deleted: [], token: "1")
    #expect(state.unfetchedZones == [zoneA, zoneB])
    var options = CKSyncEngine.FetchChangesOptions()
    #expect(state.nextZone(options, done: []) == zoneA)
    #expect(state.nextZone(options, done: [zoneA]) == zoneB)
    options.prioritizedZoneIDs = [CKRecordZone.ID(zoneName: "unchanged"), zoneB]
    #expect(state.nextZone(options, done: []) == zoneB)
    options.scope = .allExcluding([zoneB])
    #expect(state.nextZone(options, done: []) == zoneA)
    options.scope = .zoneIDs([CKRecordZone.ID(zoneName: "unchanged")])
    #expect(state.nextZone(options, done: []) == nil)
    state.didFetch(zoneA, token: "z1", moreComing: true)
    #expect(state.unfetchedZones == [zoneA, zoneB])
    state.didFetch(zoneA, token: "z2", moreComing: false)
    state.didFetch(changed: [], deleted: [zoneB], token: "2")
    #expect(state.unfetchedZones.isEmpty)
    #expect(state.zoneTokens == [zoneA: "z2"])
  }

  @Test("The engine keeps changes that failed for a transient reason, and no others")
  func retries() {
    let passing: [CKError.Code] = [
      .notAuthenticated, .accountTemporarilyUnavailable, .networkFailure, .networkUnavailable,
      .requestRateLimited, .serviceUnavailable, .zoneBusy, .operationCancelled,
    ]
    for number in 1...40 {
      guard let code = CKError.Code(rawValue: number) else { continue }
      #expect(SyncEngineState.retries(CKError(code)) == passing.contains(code), "\(code)")
    }
  }

  @Test("A state round-trips through JSON and property lists")
  func archive() throws {
    var state = SyncEngineState()
    _ = state.signIn(ada)
    state.didFetch(changed: [zoneA, zoneB], deleted: [], token: "1")
    state.didFetch(zoneB, token: "z", moreComing: false)
    state.recordChanges.add([.saveRecord(record("1")), .deleteRecord(record("0"))])
    state.databaseChanges.add([.saveZone(CKRecordZone(zoneID: zoneB)), .deleteZone(zoneA)])
    state.hasUntrackedChanges = true
    state.subscriptionID = "s"
    state.park([record("parked")])
    let copies = [
      try JSONDecoder().decode(SyncEngineState.self, from: JSONEncoder().encode(state)),
      try PropertyListDecoder().decode(
        SyncEngineState.self,
        from: PropertyListEncoder().encode(state)
      ),
    ]
    for copy in copies {
      #expect(copy.user == "_ada")
      #expect(copy.databaseToken == "1")
      #expect(copy.zoneTokens == [zoneB: "z"])
      #expect(copy.unfetchedZones == [zoneA])
      #expect(copy.recordChanges.changes == state.recordChanges.changes)
      #expect(copy.databaseChanges.changes == state.databaseChanges.changes)
      #expect(copy.hasUntrackedChanges)
      #expect(copy.parkedRecords == [record("parked")])
      #expect(copy.subscriptionID == "s")
    }
  }

  @Test("Restarting shared feeds leaves all zones unconfirmed, also unfetched ones")
  func unconfirmed() {
    var state = SyncEngineState()
    state.didFetch(changed: [zoneA, zoneB], deleted: [], token: "1")
    state.didFetch(zoneA, token: "a", moreComing: false)
    state.restartFeeds(.shared)
    #expect(state.unconfirmedZones == [zoneA, zoneB])
    state.didFetch(changed: [zoneA], deleted: [], token: "2")
    #expect(state.unconfirmedZones == [zoneB])
  }

  @Test("A refused save is remembered until it succeeds or the app deletes or removes it")
  func refusals() throws {
    var state = SyncEngineState()
    func send(_ names: [String], _ error: CKError?) {
      let changes = names.map { CKSyncEngine.PendingRecordZoneChange.saveRecord(record($0)) }
      state.add(changes)
      for mark in state.recordChanges.marks(of: changes) { state.didSend(mark, error) }
    }
    send(["1", "2", "3"], CKError(.quotaExceeded))
    send(["4"], CKError(.networkFailure))
    // The error contains the service's version of the record.
    send(["5"], CKError(.serverRecordChanged))
    #expect(state.refusedRecords == [record("1"), record("2"), record("3")])
    #expect(state.recordChanges.changes == [.saveRecord(record("4"))])
    state = try JSONDecoder().decode(SyncEngineState.self, from: JSONEncoder().encode(state))
    send(["1"], nil)
    state.add([.deleteRecord(record("2"))])
    #expect(state.refusedRecords == [record("3")])
    state.remove([.saveRecord(record("3"))])
    #expect(!state.hasRefusedRecords(in: zoneA))

    // The app removes the change while it is being sent.
    state.add([.saveRecord(record("6"))])
    let marks = state.recordChanges.marks(of: [.saveRecord(record("6"))])
    state.remove([.saveRecord(record("6"))])
    for mark in marks { state.didSend(mark, CKError(.quotaExceeded)) }
    #expect(state.refusedRecords.isEmpty)

    send(["7"], CKError(.quotaExceeded))
    state.didFetch(changed: [], deleted: [zoneA], token: "1")
    #expect(state.refusedRecords.isEmpty)
  }

  @Test("Decoding a damaged state throws")
  func damage() {
    for text in ["{}", "{\"version\":2}", "{\"version\":1,\"zones\":[{\"name\":\"\"}]}", "[]", ""] {
      #expect(throws: (any Error).self) {
        try JSONDecoder().decode(CKSyncEngine.State.Serialization.self, from: Data(text.utf8))
      }
    }
  }
}
