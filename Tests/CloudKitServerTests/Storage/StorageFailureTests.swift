import CloudKitWebServices
import Foundation
import Testing
import WatershedPostgreSQL
import WatershedSQLite

@testable import CloudKitServer

@Suite("Storage errors")
struct StorageFailureTests {
  private func reply(to error: any Error) async throws -> (status: Int, error: ErrorDictionary) {
    let response = try await TestServer().service.failures.reply(error, uuid: "u")
    return (response.status, try WireCoding.decode(ErrorDictionary.self, from: response.body))
  }

  @Test("A full disk is reported as such, with a retry time")
  func fullDisk() async throws {
    let errors: [any Error] = [
      NSError(domain: NSCocoaErrorDomain, code: CocoaError.Code.fileWriteOutOfSpace.rawValue),
      StorageFailure(sqlite(13)),
    ]
    for error in errors {
      let found = try await reply(to: error)
      #expect(found.status == 503)
      #expect(found.error.serverErrorCode == .tryAgainLater)
      #expect(found.error.reason == "the server's disk is full")
      #expect(found.error.retryAfter == 60)
    }
  }

  @Test("A database that another program has locked is busy, as PostgreSQL's is")
  func locked() async throws {
    for code: Int32 in [5, 6] {
      let found = try await reply(to: StorageFailure(sqlite(code)))
      #expect(found.status == 503)
      #expect(found.error.serverErrorCode == .tryAgainLater)
      #expect(found.error.reason == "the database is busy")
      #expect(found.error.retryAfter == 1)
    }
  }

  private func sqlite(_ code: Int32) -> SQLiteError {
    SQLiteError(code: code, extendedCode: code, message: "message", sql: "SELECT 1")
  }

  @Test("Each error of SQLite becomes a storage failure of its kind, which reads as before")
  func kinds() {
    // sqlite.org/rescode.html: BUSY, LOCKED, IOERR, CORRUPT, FULL, NOTADB.
    let kinds: [(Int32, StorageFailure.Kind)] = [
      (5, .locked), (6, .locked), (10, .other), (11, .damaged), (13, .full), (26, .damaged),
    ]
    for (code, kind) in kinds {
      let failure = StorageFailure(sqlite(code))
      #expect(failure.kind == kind, "\(code)")
      #expect(failure.description == sqlite(code).description)
    }
  }

  @Test("The engine throws no error of SQLite: reads and commits fail with a storage failure")
  func engine() throws {
    let folder = FileManager.default.temporaryDirectory
      .appendingPathComponent("storage-failure-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: folder) }
    let storage = try SQLiteStorage(folder: folder, effects: .still)
    defer { storage.close() }
    let connection = try SQLiteConnection(
      path: folder.appendingPathComponent(CloudKitService.databaseFileName).path
    )
    try connection.execute("DROP TABLE directory_entries")
    #expect(throws: StorageFailure.self) {
      try storage.read { try $0.entries(DirectoryRange(.audit)) }
    }
    var batch = WriteBatch()
    batch.savedEntries = [DirectoryEntry(DirectoryEntry.Key(.audit, "a"))]
    #expect(throws: StorageFailure.self) { try storage.commit(batch) }
  }

  @Test("Statements and file names are logged, and not sent to clients")
  func details() async throws {
    for error in [
      PostgreSQLError(state: "XX000", message: "secret", sql: "SELECT secret") as any Error,
      NSError(domain: NSPOSIXErrorDomain, code: 5, userInfo: [NSFilePathErrorKey: "/secret"]),
      // The cause is a row, not the client's request.
      MalformedBody(path: "secret.value", reason: "Invalid value"),
    ] {
      let found = try await reply(to: error)
      #expect(found.status == 500)
      #expect(found.error.serverErrorCode == .internalError)
      #expect(found.error.reason == "the server failed to answer; its log has the reason")
      #expect(found.error.uuid == "u")
    }
  }
}
