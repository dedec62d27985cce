import CloudKitWebServices
import Foundation
import Testing

@testable import CloudKitServer

/// The cost of matching subscriptions with saves.
@Suite("Matching subscriptions")
struct SubscriptionMatcherTests {
  private static let schema = TestSchema.text(
    "RECORD TYPE Note (n INT64 QUERYABLE, t STRING QUERYABLE);"
  )

  private func owned(_ id: String, field: String) throws -> OwnedSubscription {
    let subscription = Subscription(
      subscriptionID: id,
      subscriptionType: .query,
      query: RecordQuery(
        recordType: "Note",
        filterBy: [
          QueryFilter(
            comparator: .equals,
            fieldName: field,
            fieldValue: FieldValue(field == "n" ? .int64(1) : .string("x"))
          )
        ]
      )
    )
    return OwnedSubscription(
      user: "_u",
      subscription: StoredSubscription(
        id: id,
        recordType: "Note",
        body: try WireCoding.encode(subscription)
      )
    )
  }

  private let context = RequestContext(
    container: "c",
    environment: .development,
    scope: .public,
    caller: .anonymous(apiToken: nil, signInURL: ""),
    isExtended: true,
    wantsSyncToken: false
  )

  /// A creation of a record.
  private func event(n: Int64) -> RecordEvent {
    var record = StoredRecord.plain("a", tag: "1", change: 1)
    record.fields = Data(
      #"{"n":{"type":"INT64","value":\#(n)},"t":{"type":"STRING","value":"x"}}"#.utf8
    )
    return RecordEvent(before: nil, after: record, zoneName: "z")
  }

  @Test("A save compiles each subscription once, however many there are and records it has")
  func once() throws {
    let schema = try DatabaseSchema(ckdb: Self.schema)
    let type = try #require(schema[recordType: "Note"])
    // Room for two of ten.
    let matchers = SubscriptionMatchers(limit: 2000)
    let subscriptions = try (0..<10).map { try owned("s\($0)", field: "n") }
    var fired = 0
    let events = (0..<20).map { _ in event(n: 1) }
    let scan = SubscriptionScan(subscriptions, events: events, mostTests: 1000) {
      matchers.matcher(of: $0, type, context)
    }
    let access = RecordAccess(scope: .private, schema: schema)
    for var event in events {
      for listener in scan.listeners(to: event.type)
      where listener.matcher.match(&event, access) != nil {
        fired += 1
      }
    }
    #expect(fired == 200)
    #expect(scan.untested == [])
    #expect(matchers.compilations == 10)
  }

  @Test("Matchers that are used stay when others take their room, and the oldest go first")
  func generations() throws {
    let schema = try DatabaseSchema(ckdb: Self.schema)
    let type = try #require(schema[recordType: "Note"])
    let size = try owned("s0", field: "n").subscription.body.count + SubscriptionMatchers.entrySize
    let matchers = SubscriptionMatchers(limit: 3 * size)
    func use(_ number: Int) throws -> Bool {
      let before = matchers.compilations
      _ = matchers.matcher(of: try owned("s\(number)", field: "n"), type, context)
      return matchers.compilations == before
    }
    // One is used beside nine others, each once.
    var isKept: [Bool] = []
    for number in 1...9 {
      _ = try use(number)
      isKept.append(try use(0))
    }
    #expect(isKept == [false] + Array(repeating: true, count: 8))
    #expect(try use(9))
    #expect(try !use(1))
    // All that one generation holds are found again, however often they are used in turn.
    for number in [5, 6, 7] { _ = try use(number) }
    for number in [5, 6, 7, 5, 6, 7] { #expect(try use(number)) }
  }

  @Test("The subscriptions of the users with the most filters are left out of a save's limit")
  func tests() throws {
    let schema = try DatabaseSchema(ckdb: Self.schema)
    let type = try #require(schema[recordType: "Note"])
    let matchers = SubscriptionMatchers()
    /// The users that are left out, of a, b and c with one, two and three subscriptions.
    func untested(_ limit: Int, events count: Int) throws -> [String] {
      var subscriptions: [OwnedSubscription] = []
      for (index, user) in ["c", "b", "a"].enumerated() {
        for number in index..<3 {
          var own = try owned("s\(number)", field: "n")
          own.user = user
          subscriptions.append(own)
        }
      }
      let events = (0..<count).map { _ in event(n: 1) }
      return SubscriptionScan(subscriptions, events: events, mostTests: limit) {
        matchers.matcher(of: $0, type, context)
      }.untested
    }
    #expect(try untested(6, events: 1) == [])
    #expect(try untested(5, events: 1) == ["c"])
    #expect(try untested(2, events: 1) == ["b", "c"])
    #expect(try untested(0, events: 1) == ["a", "b", "c"])
    #expect(try untested(6, events: 2) == ["c"])
    #expect(try untested(0, events: 0) == [])
  }

  @Test("A matcher is cached, and created again when the subscription or the type changes")
  func kept() throws {
    let matchers = SubscriptionMatchers()
    let schema = try DatabaseSchema(ckdb: Self.schema)
    let type = try #require(schema[recordType: "Note"])
    func fires(_ owned: OwnedSubscription, _ type: RecordTypeSchema, n: Int64) throws -> Bool? {
      guard let matcher = matchers.matcher(of: owned, type, context) else { return nil }
      var event = event(n: n)
      let access = RecordAccess(scope: .private, schema: schema)
      return matcher.match(&event, access) != nil
    }
    for _ in 0..<2 {
      #expect(try fires(owned("s", field: "n"), type, n: 1) == true)
      #expect(try fires(owned("s", field: "n"), type, n: 2) == false)
    }
    // The same ID with another query.
    #expect(try fires(owned("s", field: "t"), type, n: 2) == true)
    // A type that has lost the field.
    var smaller = type
    smaller.fields.removeAll { $0.name == "n" }
    #expect(try fires(owned("s", field: "n"), smaller, n: 1) == nil)
    #expect(try fires(owned("s", field: "n"), type, n: 1) == true)
  }
}
