import CloudKitWebServices
import Effects
import Foundation
import Synchronization
import Testing

@testable import CloudKitServer

/// The work for one record of a query or of a subscription.
@Suite("The cost of filters")
struct QueryCostTests {
  /// A clock on which each look at the time takes a second.
  private final class TickingClock: EffectClock {
    private let ticks = Mutex(0.0)

    var now: Date { Date(timeIntervalSince1970: uptime) }

    var uptime: Double {
      ticks.withLock { ticks in
        ticks += 1
        return ticks
      }
    }

    func sleep(seconds: Double) async throws {}
  }

  private static let schema = TestSchema.text(
    #"RECORD TYPE Note ("___recordID" REFERENCE QUERYABLE, t STRING SEARCHABLE, "#
      + "plain STRING, l LIST<STRING> QUERYABLE);"
  )

  private func noteType() throws -> RecordTypeSchema {
    try #require(try DatabaseSchema(ckdb: Self.schema)[recordType: "Note"])
  }

  private func plan(_ filters: [QueryFilter]) throws -> QueryPlan {
    try QueryPlan(
      RecordQuery(recordType: "Note", filterBy: filters),
      noteType(),
      container: "c",
      allowsUnindexed: true
    )
  }

  private var fields: [String: FieldValue] {
    [
      "t": FieldValue(.string("The quick brown fox")),
      "l": FieldValue(.stringList(["a", "b", "c"])),
    ]
  }

  private func words(_ text: String) -> QueryFilter {
    QueryFilter(
      comparator: .containsAnyTokens,
      fieldName: "t",
      fieldValue: FieldValue(.string(text))
    )
  }

  private func contains(_ value: String) -> QueryFilter {
    QueryFilter(
      comparator: .listContains,
      fieldName: "l",
      fieldValue: FieldValue(.string(value))
    )
  }

  @Test("A hundred filters on two fields compute the words and values of each once")
  func computedOnce() throws {
    let filters = (0..<50).flatMap { _ in [words("fox"), contains("b")] }
    let plan = try plan(filters)
    var record = ComparedRecord(.plain("a", tag: "t", change: 1), fields)
    let control = ReadControl(seconds: 20, clock: StoppedClock())
    let isMatch = try plan.matches(&record, control)
    #expect(isMatch)
    #expect(record.computedFields == 2)
  }

  @Test("A read ends between two filters of one record")
  func endsBetweenFilters() throws {
    let plan = try plan(Array(repeating: words("fox"), count: 100))
    var record = ComparedRecord(.plain("a", tag: "t", change: 1), fields)
    let control = ReadControl(seconds: 20, clock: TickingClock())
    #expect(throws: ReadOver.self) { try plan.matches(&record, control) }
  }

  @Test("A read ends between two records of one batch")
  func endsBetweenRecords() throws {
    let storage = try TestEngine.storage(.still)
    defer { storage.close() }
    let id = try storage.partition(.privateDatabase)
    var batch = WriteBatch(partition: id)
    batch.records = (1...60).map {
      .plain("r\($0)", in: .defaultZone, tag: "t", change: Int64($0))
    }
    batch.counter = ChangeNumber(60)
    try storage.commit(batch)
    let index = QueryPlan.everything
    while try !storage.fillIndex(
      in: id,
      type: "Note",
      field: index.name,
      limit: 500,
      entries: { index.keys(of: $0, [:]) }
    ) {}
    func names(_ clock: any EffectClock) throws -> Int {
      try storage.read { snapshot in
        let run = QueryRun(
          plan: try plan([]),
          snapshot: snapshot,
          id: id,
          zone: .defaultZone,
          limit: 200,
          limits: ServiceLimits(),
          weight: { _ in 1 },
          control: ReadControl(seconds: 20, clock: clock),
          onUnreadable: { _, _ in },
          isReadable: { _ in true }
        )
        return try run.page(after: nil).records.count
      }
    }
    #expect(try names(StoppedClock()) == 60)
    #expect(throws: ReadOver.self) { try names(TickingClock()) }
  }

  @Test("A filter's text is bounded before its words are read", arguments: [0, 1])
  func textSize(excess: Int) throws {
    // 1000 words of 255 characters and a space each.
    let text = String(repeating: "x", count: 256_000 + excess)
    let type = try noteType()
    func refusal(_ filter: QueryFilter, isLenient: Bool = true) -> ErrorDictionary? {
      do throws(ErrorDictionary) {
        _ = try QueryPlan(
          RecordQuery(recordType: "Note", filterBy: [filter]),
          type,
          container: "c",
          allowsUnindexed: isLenient
        )
        return nil
      } catch {
        return error
      }
    }
    #expect(refusal(words(text))?.extension?.code == (excess > 0 ? .limitExceeded : nil))
    // A field without the index is refused before.
    var other = words(text)
    other.fieldName = "plain"
    #expect(refusal(other, isLenient: false)?.extension?.code == .notIndexed)
  }

  @Test("Words are compared by their first bytes, as many as an index has")
  func longWords() throws {
    let long = String(repeating: "ä", count: 1000)
    let token = try #require(Tokenizer.tokens(long).first)
    #expect(token == String(repeating: "a", count: 256))
    let wide = try #require(Tokenizer.tokens(String(repeating: "日", count: 1000)).first)
    #expect(wide == String(repeating: "日", count: 86))
    // The keys of an index are those of the whole words.
    let whole = String(repeating: "日", count: 1000)
    #expect(IndexKey(.text(wide)) == IndexKey(.text(whole)))
  }

  @Test("Subscriptions to a save compute the words of its text once")
  func subscriptions() throws {
    let context = RequestContext(
      container: "c",
      environment: .development,
      scope: .public,
      caller: .anonymous(apiToken: nil, signInURL: ""),
      isExtended: true,
      wantsSyncToken: false
    )
    let type = try noteType()
    var record = StoredRecord.plain("a", tag: "1", change: 1)
    record.fields = Data(#"{"t":{"type":"STRING","value":"The quick fox"}}"#.utf8)
    var event = RecordEvent(before: nil, after: record, zoneName: "z")
    let access = RecordAccess(scope: .private, schema: try DatabaseSchema(ckdb: Self.schema))
    for word in ["fox", "dog", "quick"] {
      let subscription = Subscription(
        subscriptionID: word,
        subscriptionType: .query,
        query: RecordQuery(
          recordType: "Note",
          filterBy: Array(repeating: words(word), count: 100)
        )
      )
      let matcher = try #require(SubscriptionMatcher(subscription, type, user: "_u", context))
      let fields = matcher.match(&event, access)
      #expect((fields != nil) == (word != "dog"))
    }
    #expect(event.computedFields == 1)
  }
}
