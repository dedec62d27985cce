import Foundation
import OpenCoreData
import Testing

@Suite("Derived numbers")
struct DerivedNumberTests {
  private typealias Parts = ModelParts

  private static func model() -> NSManagedObjectModel {
    MigrationBench.model(
      Parts.entity(
        "Entry",
        [
          Parts.attribute("count", .integer16AttributeType),
          Parts.attribute("ratio", .doubleAttributeType),
          Parts.derived("seconds", .doubleAttributeType, "now()"),
          Parts.derived("wholeSeconds", .integer64AttributeType, "now()"),
          Parts.derived("moment", .dateAttributeType, "now()"),
          Parts.derived("countAsDouble", .doubleAttributeType, "count"),
          Parts.derived("countAsDecimal", .decimalAttributeType, "count"),
          Parts.derived("ratioAsInteger", .integer32AttributeType, "ratio"),
          Parts.derived("ratioAsFloat", .floatAttributeType, "ratio"),
        ]
      )
    )
  }

  private static let keys = [
    "seconds", "wholeSeconds", "moment", "countAsDouble", "countAsDecimal", "ratioAsInteger",
    "ratioAsFloat",
  ]

  @Test("A derived number has its own type at once, and the same value when it is read again")
  func types() throws {
    let bench = try MigrationBench()
    try bench.open(Self.model()) { context in
      let entry = context.insert("Entry", ["count": 7, "ratio": 2.5])
      try context.save()
      let moment = try #require(entry.value(forKey: "moment") as? Date)
      let seconds = moment.timeIntervalSinceReferenceDate
      #expect(entry.value(forKey: "seconds") as? Double == seconds)
      #expect(entry.value(forKey: "wholeSeconds") as? Int == Int(seconds))
      #expect(entry.value(forKey: "countAsDouble") as? Double == 7)
      #expect(entry.value(forKey: "countAsDecimal") as? NSDecimalNumber == 7)
      #expect(entry.value(forKey: "ratioAsInteger") as? Int == 2)
      #expect(entry.value(forKey: "ratioAsFloat") as? Float == 2.5)
      let written = entry.dictionaryWithValues(forKeys: Self.keys)
      // Another coordinator has no cached row.
      try bench.open(Self.model()) { other in
        let read = try #require(try other.all("Entry").first)
        for key in Self.keys {
          #expect(read.value(forKey: key) as? NSObject == written[key] as? NSObject, "\(key)")
        }
      }
    }
  }
}
