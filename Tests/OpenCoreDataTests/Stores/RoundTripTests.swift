import Foundation
import OpenCoreData
import Testing
import WatershedSQLite

@Suite("Round trips of rows")
struct RoundTripTests {
  private static let types: [(String, NSAttributeType)] = [
    ("aShort", .integer16AttributeType), ("anInt", .integer32AttributeType),
    ("aLong", .integer64AttributeType), ("aDouble", .doubleAttributeType),
    ("aFloat", .floatAttributeType), ("aFlag", .booleanAttributeType),
    ("aDate", .dateAttributeType), ("aDecimal", .decimalAttributeType),
    ("aString", .stringAttributeType), ("aURL", .URIAttributeType),
    ("aUUID", .UUIDAttributeType), ("someData", .binaryDataAttributeType),
    ("aThing", .transformableAttributeType),
  ]

  private static func model() -> NSManagedObjectModel {
    let everything = ModelParts.entity(
      "Everything",
      types.map { ModelParts.attribute($0.0, $0.1) }
        + [
          ModelParts.attribute("large", .binaryDataAttributeType) {
            $0.allowsExternalBinaryDataStorage = true
          },
          ModelParts.attribute("passing", .stringAttributeType) { $0.isTransient = true },
        ]
    )
    let model = NSManagedObjectModel()
    model.entities = [everything]
    return model
  }

  private static func values(
    _ layout: EntityLayout,
    _ given: [String: RowValue]
  ) -> [RowValue] {
    layout.attributes.map { given[$0.name] ?? .null }
  }

  private static let samples: [[String: RowValue]] = [
    [
      "aShort": .integer(-32_768), "anInt": .integer(2_147_483_647),
      "aLong": .integer(.min), "aDouble": .double(0.1), "aFloat": .double(1.5),
      "aFlag": .integer(1), "aDate": .date(700_000_000.25),
      "aDecimal": .decimal(RowDecimal(Decimal(string: "0.1") ?? 0)),
      "aString": .string("Grüße, 世界 \u{0} 🌧"), "someData": .data(Data([0, 1, 255])),
      "aThing": .data(Data("bplist".utf8)), "large": .data(Data([7])),
    ],
    [
      "aLong": .integer(.max), "aDouble": .double(-0.0), "aDate": .date(12),
      "aDecimal": .decimal(
        RowDecimal(Decimal(string: "12345678901234567890123456789012345678") ?? 0)
      ),
      "aString": .string(""), "someData": .data(Data()), "large": .data(Data()),
    ],
    [
      "aDecimal": .decimal(RowDecimal(Decimal(-42))),
      "large": .data(Data(repeating: 9, count: ExternalLimit.bytes)),
    ],
    ["large": .data(Data(repeating: 8, count: ExternalLimit.bytes + 1))],
    ["aDecimal": .decimal(RowDecimal(.nan))],
    [:],
  ]

  /// The size up to which Core Data keeps data in the row.
  private enum ExternalLimit {
    static let bytes = 100_000
  }

  @Test("Every type, at its limits, survives closing and reopening the file")
  func everyType() throws {
    let folder = try ScratchFolder()
    let url = folder.file("types.sqlite")
    var written: [RowReference: [RowValue]] = [:]
    do {
      let store = try SQLiteStore(model: Self.model(), url: url)
      let entity = try #require(store.schema.entity(named: "Everything"))
      let keys = try store.reserveKeys(for: entity.layout.entity, count: Self.samples.count + 1)
      var changes = RowChanges()
      let extra: [String: RowValue] = [
        "aURL": .url(try #require(URL(string: "https://example.com/a%20b?c=d#e"))),
        "aUUID": .uuid(try #require(UUID(uuidString: "8E9D6A40-0000-4000-8000-00000000FFEE"))),
      ]
      for (key, sample) in zip(keys, Self.samples + [extra]) {
        let reference = RowReference(entityNumber: entity.number, key: key)
        let values = Self.values(entity.layout, sample)
        written[reference] = values
        changes.inserted.append(
          RowChanges.Insertion(reference: reference, layout: entity.layout, values: values)
        )
      }
      #expect(try store.commit(changes).rows.count == written.count)
      store.close()
    }
    let store = try SQLiteStore(model: try SQLiteStore.model(inStoreAt: url), url: url)
    let rows = try store.rows(Array(written.keys))
    #expect(rows.count == written.count)
    for (reference, values) in written {
      let row = try #require(rows[reference])
      #expect(row.version == 1)
      for (index, value) in values.enumerated() {
        if case .decimal(let decimal) = value, decimal.value.isNaN {
          guard case .decimal(let back) = row.values[index] else {
            Issue.record("NaN came back as \(row.values[index])")
            continue
          }
          #expect(back.value.isNaN)
        } else {
          #expect(row.values[index] == value)
        }
      }
    }
    let support = folder.file(".types_SUPPORT/_EXTERNAL_DATA")
    #expect(try FileManager.default.contentsOfDirectory(atPath: support.path).count == 1)
  }

  @Test("The storage classes are those of the format")
  func storageClasses() throws {
    let folder = try ScratchFolder()
    let url = folder.file("types.sqlite")
    let store = try SQLiteStore(model: Self.model(), url: url)
    let entity = try #require(store.schema.entity(named: "Everything"))
    let keys = try store.reserveKeys(for: entity.layout.entity, count: 1)
    var changes = RowChanges()
    changes.inserted = [
      RowChanges.Insertion(
        reference: RowReference(entityNumber: entity.number, key: keys.lowerBound),
        layout: entity.layout,
        values: Self.values(entity.layout, Self.samples[0])
      )
    ]
    _ = try store.commit(changes)
    let plain = try SQLiteConnection(path: url.path, mode: .readOnly)
    let kinds = try plain.query(
      """
      SELECT typeof(ZALONG), typeof(ZADOUBLE), typeof(ZADATE), typeof(ZADECIMAL),
        typeof(ZASTRING), typeof(ZSOMEDATA), hex(ZLARGE), Z_OPT FROM ZEVERYTHING
      """
    ) { row in (0..<8).map { row.text($0) } }
    #expect(kinds == [["integer", "real", "real", "real", "text", "blob", "0107", "1"]])
  }

  @Test("Replaced and deleted external data leaves no file")
  func externalFiles() throws {
    let folder = try ScratchFolder()
    let store = try SQLiteStore(model: Self.model(), url: folder.file("big.sqlite"))
    let entity = try #require(store.schema.entity(named: "Everything"))
    guard case .attribute(let slot)? = entity.layout.slot(named: "large") else { return }
    let support = folder.file(".big_SUPPORT/_EXTERNAL_DATA").path
    func files() -> Int {
      (try? FileManager.default.contentsOfDirectory(atPath: support).count) ?? 0
    }
    let reference = try store.write(author: nil) { transaction in
      var values = Self.values(entity.layout, [:])
      values[slot] = .data(Data(repeating: 1, count: 200_000))
      return try transaction.insert(entity.layout, values: values)
    }
    #expect(files() == 1)
    try store.write(author: nil) { transaction in
      try transaction.update(reference, set: [slot: .data(Data(repeating: 2, count: 300_000))])
    }
    #expect(files() == 1)
    #expect(throws: CancellationError.self) {
      try store.write(author: nil) { transaction in
        try transaction.update(reference, set: [slot: .data(Data(repeating: 3, count: 300_000))])
        throw CancellationError()
      }
    }
    #expect(files() == 1)
    #expect(
      try store.row(reference).found?.values[slot] == .data(Data(repeating: 2, count: 300_000))
    )
    try store.write(author: nil) { try $0.delete(reference) }
    #expect(files() == 0)
  }

  @Test("A NaN is null in the cache, as in the file")
  func notANumber() throws {
    let library = try Library()
    let context = library.context()
    try context.performAndWait {
      let book = Book(context: context)
      book.setValue(Double.nan, forKey: "weight")
      try context.save()
      #expect(book.value(forKey: "weight") == nil)
      context.refresh(book, mergeChanges: false)
      #expect(book.value(forKey: "weight") == nil)
    }
  }
}
