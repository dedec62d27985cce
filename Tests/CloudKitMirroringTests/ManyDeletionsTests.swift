import CloudKitMirroring
import CloudKitTesting
import Foundation
import OpenCoreData
import Testing

@Suite("Many deletions that wait while the server loses data")
struct ManyDeletionsTests {
  private static let count = 1_100

  private func withWaitingDeletions(
    _ body: (MirrorSession) throws -> Void
  ) async throws {
    let world = try await World()
    let phone = try await ScriptedDevice("phone", in: world)
    try await phone.sync()
    await phone.mirror.stopAndFinish()
    try phone.mirror.write(MirrorAuthor.importing) { session in
      for number in 0..<Self.count {
        var record = RecordMetadata(
          name: "\(number)",
          recordType: "CD_Post",
          entityName: "Post",
          key: nil
        )
        record.tag = "t"
        record.stamps.created = 1
        record.pending = .delete
        try session.metadata.insert(record)
      }
      try body(session)
      // An object that was made and deleted here before it was sent.
      try session.metadata.keepUnsent("short", entity: "Post", key: 7)
      for number in 0..<Self.count {
        #expect(try session.metadata.takeUnsent("\(number)"), "\(number) may come back")
      }
      #expect(try !session.metadata.takeUnsent("0"))
      #expect(try session.metadata.takeUnsent(entity: "Post", key: 7) == "short")
    }
    try await phone.quit()
  }

  @Test("A sweep of a restored server remembers every deletion that was pending")
  func restoredServer() async throws {
    try await withWaitingDeletions { session in
      var position = SweepPosition()
      while try session.sendMissing(generation: 9, limit: 500, from: &position) {}
      #expect(try session.metadata.pendingCount() == 0)
    }
  }

  @Test("The loss of a zone leaves every pending deletion remembered")
  func lostZone() async throws {
    try await withWaitingDeletions { session in _ = try session.forgetZone() }
  }
}
