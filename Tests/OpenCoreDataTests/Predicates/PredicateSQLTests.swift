import Effects
import Foundation
import OpenCoreData
import Testing
import WatershedSQLite

@Suite("Predicates in SQL")
struct PredicateSQLTests {
  private func writer() -> PredicateSQLWriter {
    PredicateSQLWriter(
      naming: SampleNaming(),
      entity: "Post",
      now: Date(timeIntervalSinceReferenceDate: 3)
    )
  }

  @Test(
    "The SQL of a predicate can use indexes",
    arguments: [
      ("title == 'x'", "t0.ZTITLE = ?", ""),
      ("title != 'x'", "t0.ZTITLE IS NOT ?", ""),
      ("title == nil", "t0.ZTITLE IS NULL", ""),
      ("NOT title == 'x'", "(t0.ZTITLE = ?) IS NOT TRUE", ""),
      ("views BETWEEN {1, 2}", "(t0.ZVIEWS >= ? AND t0.ZVIEWS <= ?)", ""),
      ("views IN {1, 2}", "t0.ZVIEWS IN (?, ?)", ""),
      ("views IN {}", "0", ""),
      // As in SQLite, which compares a text column with a number as texts.
      ("title == 5", "t0.ZTITLE = ?", ""),
      ("title IN {1, 2}", "t0.ZTITLE IN (?, ?)", ""),
      ("title IN {'a', nil}", "(t0.ZTITLE IS NULL OR t0.ZTITLE IN (?))", ""),
      ("ANY title IN {'a'}", "(t0.ZTITLE IS NOT NULL AND t0.ZTITLE IN (?))", ""),
      ("title BEGINSWITH 'x'", "(t0.ZTITLE >= ? AND t0.ZTITLE < ?)", ""),
      ("title ==[c] 'X'", "WatershedFold('c', t0.ZTITLE) = ?", ""),
      ("title CONTAINS[cd] 'x'", "WatershedTest('CONTAINS', 'cd', t0.ZTITLE, ?)", ""),
      (
        "author.name == 'x'", "t1.ZNAME = ?",
        " LEFT OUTER JOIN ZAUTHOR t1 ON t1.Z_PK = t0.ZAUTHOR"
      ),
      ("author == nil", "t0.ZAUTHOR IS NULL", ""),
      (
        "ANY tags.name == 'x'",
        "EXISTS (SELECT 1 FROM Z_2TAGS t2 JOIN ZTAG t1 ON t1.Z_PK = t2.Z_3TAGS "
          + "WHERE t2.Z_2POSTS = t0.Z_PK AND t1.ZNAME = ?)", ""
      ),
      (
        "tags.@count > 1",
        "(SELECT COUNT(*) FROM Z_2TAGS t2 JOIN ZTAG t1 ON t1.Z_PK = t2.Z_3TAGS "
          + "WHERE t2.Z_2POSTS = t0.Z_PK) > ?", ""
      ),
      ("views + 1 > likes", "(t0.ZVIEWS + ?) > t0.ZLIKES", ""),
      ("views == 'x'", "0", ""),
      ("date < now()", "t0.ZDATE < ?", ""),
    ]
  )
  func writes(_ format: String, _ sql: String, _ joins: String) throws {
    let writer = writer()
    let condition = try writer.condition(NSPredicate(format: format))
    #expect(condition.sql == sql)
    #expect(writer.joins == joins)
    #expect(condition.bindings.count == condition.sql.count { $0 == "?" })
  }

  @Test(
    "A predicate that SQL cannot express is refused with the reason",
    arguments: [
      ("draft == 1", "draft is transient"),
      ("unknown == 1", "keypath unknown not found in entity <NSSQLEntity Post id=1>"),
      ("author.unknown == 1", "keypath author.unknown not found in entity <NSSQLEntity Post id=1>"),
      ("extra == 1", "in memory only"),
      ("tags.name == 'x'", "to-many key not allowed here"),
      ("title MATCHES '('", "Can't do regex matching"),
      ("title == $X", "Can't get value for 'X'"),
      ("tags[0].name == 'x'", "key path must start at an object"),
      ("median(tags.rank) == 1", "no such aggregate"),
    ]
  )
  func refuses(_ format: String, _ reason: String) throws {
    let error = try #require(throws: PredicateNotTranslatable.self) {
      _ = try writer().condition(NSPredicate(format: format))
    }
    #expect(error.reason.contains(reason), "\(error)")
  }

  @Test("A block is refused, also inside one of Foundation's compounds")
  func refusesBlocks() {
    let block = NSPredicate { _, _ in true }
    let compound = NSCompoundPredicate(andPredicateWithSubpredicates: [
      NSPredicate(format: "views == 1"), block,
    ])
    #expect(throws: PredicateNotTranslatable.self) { _ = try writer().condition(compound) }
  }

  @Test("A list of any length is one statement")
  func longLists() throws {
    let library = try SampleLibrary(random: SeededRandomness(seed: 1))
    let numbers = writer()
    let many = NSPredicate(format: "views IN %@", Array(0..<40_000))
    let condition = try numbers.condition(many)
    #expect(condition.bindings.count == 1)
    let expected = library.posts.filter { many.evaluate(with: $0) }.map(\.key)
    #expect(try library.posts(numbers, condition) == expected)
    let texts = writer()
    let titles = (0..<600).map { "t\($0)\"\\" } + ["é", "a b"]
    let inTitles = NSPredicate(format: "title IN[c] %@", titles)
    let found = try library.posts(texts, try texts.condition(inTitles))
    #expect(found == library.posts.filter { inTitles.evaluate(with: $0) }.map(\.key))
    let alternatives = NSCompoundPredicate(
      orPredicateWithSubpredicates: (0..<3_000).map { NSPredicate(format: "views == %d", $0) }
    )
    let chain = writer()
    #expect(try library.posts(chain, try chain.condition(alternatives)) == expected)
  }

  @Test("A prefix search uses the column's index")
  func prefixUsesIndex() throws {
    let library = try SampleLibrary(random: SeededRandomness(seed: 1))
    try library.connection.execute("CREATE INDEX TITLES ON ZPOST (ZTITLE COLLATE BINARY ASC)")
    let condition = try writer().condition(NSPredicate(format: "title BEGINSWITH 'a'"))
    let plan = try library.connection.query(
      "EXPLAIN QUERY PLAN SELECT Z_PK FROM ZPOST t0 WHERE \(condition.sql)",
      condition.bindings.map(\.sqlite)
    ) { $0.text(3) }
    #expect(plan.joined().contains("TITLES"), "\(plan)")
  }

  @Test("A dictionary fetch computes aggregates and may name its columns")
  func rowAggregates() throws {
    let library = try SampleLibrary(random: SeededRandomness(seed: 2))
    var writer = PredicateSQLWriter(
      naming: SampleNaming(),
      entity: "Post",
      now: Date(timeIntervalSinceReferenceDate: 0),
      aggregatesRows: true
    )
    let total = try writer.value(NSExpression(format: "sum:(views)"))
    #expect(total.kind == .number)
    writer.named["total"] = total
    let sum = total.fragment
    let having = try writer.condition(NSPredicate(format: "total > %d", -100))
    let totals = try library.connection.query(
      "SELECT \(sum.sql) FROM ZPOST t0 GROUP BY t0.ZFLAG HAVING \(having.sql)",
      (sum.bindings + having.bindings).map(\.sqlite)
    ) { $0.int64(0) }
    let views = library.posts.compactMap { ($0.value(forKey: "views") as? NSNumber)?.int64Value }
    #expect(totals.reduce(0, +) == views.reduce(0, +))
    let count = try writer.value(NSExpression(format: "count:(distinct:(title))"))
    #expect(count.fragment.sql == "COUNT(DISTINCT t0.ZTITLE)")
  }

  @Test("Sorting in SQL and in memory gives the same order")
  func order() throws {
    let library = try SampleLibrary(random: SeededRandomness(seed: 3))
    for key in ["title", "views", "price", "date", "author.name", "score", "link", "tags.@count"] {
      for ordering in SortOrdering.allCases {
        for ascending in [true, false] {
          let writer = writer()
          let descriptor = NSSortDescriptor(key: key, ascending: ascending, ordering: ordering)
          let order = try writer.order(by: [descriptor], appendingKey: true)
          let inSQL = try library.connection.query(
            "SELECT t0.Z_PK FROM ZPOST t0\(writer.joins) ORDER BY \(order.sql)"
          ) { $0.int64(0) }
          let inMemory = library.posts.sorted(using: [descriptor]) { $0 }.map(\.key)
          #expect(inSQL == inMemory, "\(descriptor)")
        }
      }
    }
    let own = NSSortDescriptor(key: "title", ascending: true) { _, _ in .orderedSame }
    #expect(throws: PredicateNotTranslatable.self) { _ = try writer().order(by: [own]) }
  }
}
