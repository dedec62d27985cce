import Testing
import WatershedPostgreSQL

@testable import CloudKitServer

@Suite("A transaction on PostgreSQL that failed")
struct PostgreSQLRetryTests {
  private func error(_ state: String) -> PostgreSQLError {
    PostgreSQLError(state: state, message: "")
  }

  @Test("Deadlocks are tried again sixteen times, a lost connection once, a wait never")
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
    // A standby: the next connection may find the server that took over.
    #expect(count("25006") == 2)
    #expect(count("55000") == 2)
    // The limits of locks and statements are the whole time that a request waits.
    #expect(count("55P03") == 1)
    #expect(count("57014") == 1)
    #expect(count("53300") == 1)
    #expect(count("XX000") == 1)
  }

  @Test(
    "A connection notices within a minute that the other side is gone; the URL may say otherwise"
  )
  func keepalive() throws {
    let names = PostgreSQLConnection.settings("postgresql:///x").map(\.name)
    let url = try #require(names.firstIndex(of: "dbname"))
    for name in ["keepalives_idle", "keepalives_interval", "keepalives_count", "tcp_user_timeout"] {
      #expect(try #require(names.firstIndex(of: name)) < url)
    }
  }

  @Test(
    "A URL that leads to another machine without checking its certificate is known",
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

  @Test("What passes by itself asks the client to try again later; the rest is the server's fault")
  func replies() {
    for state in ["40P01", "55P03", "57014", "08006", "57P01", "53300", "25006", "55000"] {
      let reply = PostgreSQLRetries.reply(to: error(state))
      #expect(reply?.serverErrorCode == .tryAgainLater)
    }
    #expect(PostgreSQLRetries.reply(to: error("XX000")) == nil)
    #expect(PostgreSQLRetries.reply(to: error("42601")) == nil)
  }
}
