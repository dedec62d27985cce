import Testing
import WatershedPostgreSQL

@Suite("PostgreSQL's client library")
struct LibPQTests {
  @Test("A machine without libpq gets an error that names the package to install")
  func missingLibrary() throws {
    let error = #expect(throws: PostgreSQLError.self) {
      _ = try LibPQ(names: ["libpq.so.none", "libpq.so.neither"])
    }
    let found = try #require(error)
    #expect(found.isMissingLibrary)
    #expect(!found.isConnectionLoss, "It is not retried.")
    #expect(found.message.contains("apt-get install libpq5"))
    #expect(found.message.contains("libpq.so.none"))
    #expect(found.message.contains("libpq.so.neither"))
  }

  @Test("A library without the functions of pipelines is refused by the name of the first")
  func otherLibrary() throws {
    let error = #expect(throws: PostgreSQLError.self) { _ = try LibPQ(names: ["libc.so.6"]) }
    let found = try #require(error)
    #expect(found.isMissingLibrary)
    #expect(found.message.contains("PQconnectdbParams"))
  }
}
