import Effects
import Foundation
import OpenCoreData
import WatershedSQLite

/// The same objects twice: in memory, and as rows in an SQLite database.
///
/// Authors have posts, posts have tags; every property may be nil.
final class SampleLibrary {
  let authors: [SampleObject]
  let posts: [SampleObject]
  let tags: [SampleObject]
  let connection: SQLiteConnection

  static let texts: [String?] = [
    nil, "", "a", "A", "ab", "Ab", "abc", "b", "é", "É", "éa", "e", "z", "a*b", "a?b", "a b",
    "item 9", "item 10", "ß", "日本", "e\u{301}", "SS", "İ", "ı", "ﬁ", "fi", "Å", "👨‍👩‍👧", "12", "1.5",
    "%", "_", "a\\b",
  ]

  init(random: SeededRandomness) throws {
    func pick<Value>(_ values: [Value]) -> Value {
      values[Int(random.next() % UInt64(values.count))]
    }
    func number(_ range: Int) -> Int64 { Int64(random.next() % UInt64(range)) }
    func maybe(_ value: RowValue) -> RowValue { random.next() % 4 == 0 ? .null : value }
    func text() -> RowValue { pick(Self.texts).map(RowValue.string) ?? .null }
    authors = (1...8).map { key in
      SampleObject(
        "Author",
        Int64(key),
        ["name": text(), "age": maybe(.integer(number(10))), "city": text()]
      )
    }
    tags = (1...8).map { key in
      SampleObject(
        "Tag",
        Int64(key),
        ["name": text(), "rank": maybe(.integer(number(6) - 2))]
      )
    }
    posts = (1...60).map { key in
      SampleObject(
        "Post",
        Int64(key),
        [
          "number": .integer(Int64(key)),
          "title": text(),
          "subtitle": text(),
          "views": maybe(.integer(number(12) - 3)),
          "likes": maybe(.integer(number(6))),
          "score": maybe(.double(Double(number(16)) / 4)),
          "price": maybe(.decimal(RowDecimal(Decimal(Double(number(12)) / 4)))),
          "date": maybe(.date(Double(number(10)) / 2)),
          "flag": maybe(.integer(number(2))),
          "link": maybe(pick([URL(string: "a:b"), URL(string: "x:y")]).map(RowValue.url) ?? .null),
          "uuid": maybe(
            .uuid(UUID(uuid: (UInt8(number(3)), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)))
          ),
        ]
      )
    }
    for post in posts {
      if random.next() % 4 > 0 {
        let author = pick(authors)
        post.links["author"] = author
        author.many["posts", default: []].append(post)
      }
      for tag in tags where random.next() % 5 == 0 {
        post.many["tags", default: []].append(tag)
        tag.many["posts", default: []].append(post)
      }
    }
    connection = try SQLiteConnection(path: ":memory:")
    try PredicateSQLFunctions.register(on: connection)
    try fill()
  }

  private func fill() throws {
    try connection.execute(
      """
      CREATE TABLE ZAUTHOR (Z_PK INTEGER PRIMARY KEY, ZAGE INTEGER, ZCITY VARCHAR, ZNAME VARCHAR);
      CREATE TABLE ZTAG (Z_PK INTEGER PRIMARY KEY, ZRANK INTEGER, ZNAME VARCHAR);
      CREATE TABLE ZPOST (Z_PK INTEGER PRIMARY KEY, ZNUMBER INTEGER, ZFLAG INTEGER, ZVIEWS INTEGER,
        ZLIKES INTEGER, ZAUTHOR INTEGER, ZSCORE FLOAT, ZDATE TIMESTAMP, ZPRICE DECIMAL,
        ZTITLE VARCHAR, ZSUBTITLE VARCHAR, ZLINK VARCHAR, ZUUID BLOB);
      CREATE TABLE Z_2TAGS (Z_2POSTS INTEGER, Z_3TAGS INTEGER,
        PRIMARY KEY (Z_2POSTS, Z_3TAGS));
      """
    )
    for object in authors + tags + posts {
      var columns = ["Z_PK"]
      var values: [SQLiteValue] = [.integer(object.key)]
      for (name, value) in object.values.sorted(by: { $0.key < $1.key }) {
        columns.append("Z" + name.uppercased())
        values.append(value.sqlite)
      }
      if let author = object.links["author"] {
        columns.append("ZAUTHOR")
        values.append(.integer(author.key))
      }
      let marks = Array(repeating: "?", count: values.count).joined(separator: ", ")
      try connection.run(
        "INSERT INTO Z\(object.entity.uppercased()) (\(columns.joined(separator: ", "))) "
          + "VALUES (\(marks))",
        values
      )
      guard object.entity == "Post" else { continue }
      for tag in object.many["tags"] ?? [] {
        try connection.run(
          "INSERT INTO Z_2TAGS VALUES (?, ?)",
          [.integer(object.key), .integer(tag.key)]
        )
      }
    }
  }

  /// The keys of the posts that the SELECT finds.
  func posts(_ writer: PredicateSQLWriter, _ condition: SQLFragment) throws -> [Int64] {
    try connection.query(
      "SELECT t0.Z_PK FROM ZPOST t0\(writer.joins) WHERE \(condition.sql) ORDER BY t0.Z_PK",
      condition.bindings.map(\.sqlite)
    ) { $0.int64(0) }
  }
}

/// An object with the interface of a managed object.
final class SampleObject: KeyValueCoding, RowValueReading, ObjectIdentified {
  struct Identifier: Hashable {
    var entity: String
    var key: Int64
  }

  let entity: String
  let key: Int64
  let values: [String: RowValue]
  var links: [String: SampleObject] = [:]
  var many: [String: [SampleObject]] = [:]

  init(_ entity: String, _ key: Int64, _ values: [String: RowValue]) {
    self.entity = entity
    self.key = key
    self.values = values
  }

  /// Its row in a store, once it is stored.
  var row: RowReference?

  var comparisonIdentifier: AnyHashable {
    row.map { AnyHashable($0) } ?? AnyHashable(Identifier(entity: entity, key: key))
  }

  func rowValue(forKey key: String) -> RowValue? { values[key] }

  func value(forKey key: String) -> Any? {
    if let value = values[key] { return ExpressionValue(row: value).foundationValue }
    if let link = links[key] { return link }
    if key == "tags" || key == "posts" { return many[key] ?? [] }
    return nil
  }
}

/// The table names of this database.
struct SampleNaming: SQLNaming {
  func sqlProperty(_ name: String, ofEntity entity: String) -> SQLProperty? {
    switch (entity, name) {
    case ("Post", "author"):
      .toOne(destination: "Author", column: "ZAUTHOR", entityColumn: nil)
    case ("Post", "tags"):
      .toMany(
        destination: "Tag",
        link: .joinTable(
          table: "Z_2TAGS",
          sourceColumn: "Z_2POSTS",
          destinationColumn: "Z_3TAGS",
          orderColumn: nil
        )
      )
    case ("Tag", "posts"):
      .toMany(
        destination: "Post",
        link: .joinTable(
          table: "Z_2TAGS",
          sourceColumn: "Z_3TAGS",
          destinationColumn: "Z_2POSTS",
          orderColumn: nil
        )
      )
    case ("Author", "posts"):
      .toMany(
        destination: "Post",
        link: .foreignKey(column: "ZAUTHOR", orderColumn: nil)
      )
    case ("Post", "draft"): .transient
    case ("Post", "extra"): .attribute(column: "ZEXTRA", kind: .opaque)
    default: kind(name).map { .attribute(column: "Z" + name.uppercased(), kind: $0) }
    }
  }

  private func kind(_ name: String) -> SQLColumnKind? {
    switch name {
    case "name", "city", "title", "subtitle": .string
    case "age", "rank", "views", "likes", "flag": .integer
    case "score": .double
    case "price": .decimal
    case "date": .date
    case "link": .url
    case "uuid": .uuid
    default: nil
    }
  }

  func sqlTable(ofEntity entity: String) -> String { "Z" + entity.uppercased() }

  func sqlEntityNumbers(ofEntity entity: String, includesSubentities: Bool) -> [Int32] { [1] }

  func sqlRow(of identifier: AnyHashable) -> SQLRow? {
    guard let row = identifier.base as? SampleObject.Identifier, row.key > 0 else { return nil }
    return SQLRow(table: sqlTable(ofEntity: row.entity), key: row.key)
  }
}

extension RowValue {
  var sqlite: SQLiteValue {
    switch self {
    case .null: .null
    case .integer(let value): .integer(value)
    case .double(let value), .date(let value): .real(value)
    case .decimal(let value): .real(NSDecimalNumber(decimal: value.value).doubleValue)
    case .string(let value): .text(value)
    case .url(let value): .text(value.absoluteString)
    case .uuid(let value): .blob(withUnsafeBytes(of: value.uuid) { Data($0) })
    case .data(let value): .blob(value)
    case .reference(let value): .integer(value.key)
    }
  }
}
