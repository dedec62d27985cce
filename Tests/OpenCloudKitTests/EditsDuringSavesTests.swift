import CloudKitWebServices
import Foundation
import OpenCloudKit
import Testing

@Suite("Edits of a record while it is being saved")
struct EditsDuringSavesTests {
  private let service = ScriptedService()
  private let recordID = CKRecord.ID(recordName: "n", zoneID: CKRecordZone.ID(zoneName: "zone"))

  private static let reply = """
    {"records":[{"recordName":"n","recordType":"Note","recordChangeTag":"1",
     "parent":{"recordName":"a"}}]}
    """

  /// Saves a record twice and edits it during the first save; returns the second request's record.
  private func secondSave(
    _ record: CKRecord,
    _ edit: @escaping @Sendable (CKRecord) -> Void
  ) async throws -> NSDictionary {
    service.answer { _ in
      edit(record)
      return WebServiceResponse(status: 200, body: Data(Self.reply.utf8))
    }
    service.answer(Self.reply)
    let database = service.container().privateCloudDatabase
    try await database.save(record)
    try await database.save(record)
    let operation = try #require((service.body(1)["operations"] as? [NSDictionary])?.first)
    return try #require(operation["record"] as? NSDictionary)
  }

  private func note(parent: String?) -> CKRecord {
    let record = CKRecord(recordType: "Note", recordID: recordID)
    record.setParent(parent.map { CKRecord.ID(recordName: $0, zoneID: recordID.zoneID) })
    return record
  }

  @Test("A parent that is set during a save is sent with the next one", arguments: ["a", nil])
  func parent(before: String?) async throws {
    let record = note(parent: before)
    let sent = try await secondSave(record) { record in
      record.setParent(CKRecord.ID(recordName: "b", zoneID: record.recordID.zoneID))
    }
    #expect((sent["parent"] as? NSDictionary)?["recordName"] as? String == "b")
    #expect(record.parent?.recordID.recordName == "a")
  }

  @Test("A parent that is removed during a save is removed with the next one")
  func removedParent() async throws {
    let record = note(parent: "a")
    let sent = try await secondSave(record) { $0.parent = nil }
    #expect(sent["parent"] is NSNull)
  }

  @Test("A parent that was saved is not sent again")
  func unchanged() async throws {
    let sent = try await secondSave(note(parent: "a")) { $0["text"] = "x" }
    #expect(sent["parent"] == nil)
    #expect((sent["fields"] as? NSDictionary)?["text"] != nil)
  }

  @Test("A share that is made for a record during a save is requested with the next one")
  func share() async throws {
    let sent = try await secondSave(note(parent: "a")) { _ = CKShare(rootRecord: $0) }
    #expect(sent["createShortGUID"] as? Bool == true)
  }
}
