import Testing
import WatershedPostgreSQL

@testable import CloudKitServer

@Suite("Retries of failed transactions on PostgreSQL")
struct PostgreSQLRetryTests {
  private func error(_ state: String) -> PostgreSQLError {
    PostgreSQLError(state: state, message: "")
  }

  @Test("A deadlock is retried sixteen times, a lost connection once, a timeout never")
  func repetitions() {
    func count(_ state: String) -> Int {
      var retries = PostgreSQLRetries()
      var count = 1
      while retries.repeats(after: error(state)) { count += 1 }
      return count
    }
    #expect(count("40P01") == 16)
    #expect(count("40001") == 16)
    #expect(count("08006") == 2)
    #expect(count("57P01") == 2)
    // A standby: the next connection may be to the new primary.
    #expect(count("25006") == 2)
    #expect(count("55000") == 2)
    // The lock and statement timeouts are the whole time that a request waits.
    #expect(count("55P03") == 1)
    #expect(count("57014") == 1)
    #expect(count("53300") == 1)
    #expect(count("XX000") == 1)
  }

  @Test(
    "A connection detects within a minute that its peer is gone, unless the URL says otherwise"
  )
  func keepalive() throws {
    let names = PostgreSQLConnection.settings("postgresql:///x").map(\.name)
    let url = try #require(names.firstIndex(of: "dbname"))
    for name in ["keepalives_idle", "keepalives_interval", "keepalives_count", "tcp_user_timeout"] {
      #expect(try #require(names.firstIndex(of: name)) < url)
    }
  }

  @Test(
    "A URL to another machine without a certificate check is detected",
    arguments: [
      ("postgresql:///watershed", false), ("postgresql://u@localhost/w", false),
      ("postgresql://u@127.0.0.1:5433/w", false), ("postgresql://u@[::1]/w", false),
      ("postgresql:///w?host=/var/run/postgresql", false),
      ("postgresql://u@db.example.org/w", true), ("postgresql:///w?host=db.example.org", true),
      ("postgresql://u@db.example.org/w?sslmode=require", true),
      ("postgresql://u@db.example.org/w?sslmode=verify-full", false),
    ]
  )
  func verification(url: String, isUnverified: Bool) {
    #expect(PostgreSQLAddress.isUnverified(url) == isUnverified)
  }

  @Test("Transient errors ask the client to retry later; others are internal errors")
  func replies() {
    for state in ["40P01", "55P03", "57014", "08006", "57P01", "53300", "25006", "55000"] {
      let reply = PostgreSQLRetries.reply(to: error(state))
      #expect(reply?.serverErrorCode == .tryAgainLater)
    }
    #expect(PostgreSQLRetries.reply(to: error("XX000")) == nil)
    #expect(PostgreSQLRetries.reply(to: error("42601")) == nil)
  }
}
