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

  @Test("A matcher is cached, and created again when the subscription or the type changes")
  func kept() throws {
    let matchers = SubscriptionMatchers()
    let context = RequestContext(
      container: "c",
      environment: .development,
      scope: .public,
      caller: .anonymous(apiToken: nil, signInURL: ""),
      isExtended: true,
      wantsSyncToken: false
    )
    let schema = try DatabaseSchema(ckdb: Self.schema)
    let type = try #require(schema[recordType: "Note"])
    func fires(_ owned: OwnedSubscription, _ type: RecordTypeSchema, n: Int64) throws -> Bool? {
      guard let matcher = matchers.matcher(of: owned, type, context) else { return nil }
      var record = StoredRecord.plain("a", tag: "1", change: 1)
      record.fields = Data(
        #"{"n":{"type":"INT64","value":\#(n)},"t":{"type":"STRING","value":"x"}}"#.utf8
      )
      var event = RecordEvent(before: nil, after: record, zoneName: "z")
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
