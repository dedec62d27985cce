import Foundation
import OpenCoreData
import Testing

/// Apple's documentation of `NSDerivedAttributeDescription` allows a to-one key path, such as
/// `name` or `author.name`, directly or through `canonical:`, `uppercase:` or `lowercase:`.
@Suite("Attributes derived over to-one relationships")
struct DerivedPathTests {
  private typealias Parts = ModelParts

  private static func model(derived: Bool = true) -> NSManagedObjectModel {
    let country = Parts.entity("Country", [Parts.text("name")])
    let author = Parts.entity("Author", [Parts.text("name")])
    let book = Parts.entity("Book", [Parts.text("title")])
    if derived {
      book.properties += [
        Parts.derived("copy", .stringAttributeType, "title"),
        Parts.derived("writer", .stringAttributeType, "author.name"),
        Parts.derived("plainWriter", .stringAttributeType, "canonical:(author.name)"),
        Parts.derived("land", .stringAttributeType, "author.country.name"),
        Parts.derived("upperLand", .stringAttributeType, "uppercase:(author.country.name)"),
        Parts.derived("former", .stringAttributeType, "sequelOf.title"),
        Parts.derived("first", .stringAttributeType, "sequelOf.sequelOf.title"),
      ]
    }
    Parts.relate(book, "author", toMany: false, author, "books", toMany: true)
    Parts.relate(author, "country", toMany: false, country, "authors", toMany: true)
    Parts.relate(book, "sequelOf", toMany: false, book, "sequels", toMany: true)
    return MigrationBench.model(country, author, book)
  }

  private func values(_ book: NSManagedObject) -> [String?] {
    ["copy", "writer", "plainWriter", "land", "upperLand", "former", "first"].map {
      book.value(forKey: $0) as? String
    }
  }

  /// Each step is a save of its own, so that every trigger is tested alone.
  @Test("Derived values follow the object, the to-ones on the path and the final attribute")
  func steps() throws {
    let bench = try MigrationBench()
    try bench.open(Self.model(), [:]) { context in
      let (ireland, france) = (
        context.insert("Country", ["name": "Éire"]), context.insert("Country", ["name": "France"])
      )
      let author = context.insert("Author", ["name": "Ása", "country": ireland])
      let (one, two) = (
        context.insert("Book", ["title": "One"]), context.insert("Book", ["title": "Two"])
      )
      let three = context.insert("Book", ["title": "Three", "author": author, "sequelOf": two])
      two.setValue(one, forKey: "sequelOf")
      try context.save()
      func expect(
        _ expected: [String?],
        _ location: SourceLocation = #_sourceLocation
      ) throws {
        try context.save()
        context.refreshAllObjects()
        #expect(values(three) == expected, sourceLocation: location)
      }
      try expect(["Three", "Ása", "asa", "Éire", "ÉIRE", "Two", "One"])
      ireland.setValue("Ireland", forKey: "name")
      try expect(["Three", "Ása", "asa", "Ireland", "IRELAND", "Two", "One"])
      author.setValue(france, forKey: "country")
      try expect(["Three", "Ása", "asa", "France", "FRANCE", "Two", "One"])
      author.setValue("Zoé", forKey: "name")
      one.setValue("Uno", forKey: "title")
      try expect(["Three", "Zoé", "zoe", "France", "FRANCE", "Two", "Uno"])
      two.setValue(nil, forKey: "sequelOf")
      three.setValue("Tres", forKey: "title")
      try expect(["Tres", "Zoé", "zoe", "France", "FRANCE", "Two", nil])
      three.setValue(nil, forKey: "author")
      three.setValue(one, forKey: "sequelOf")
      try expect(["Tres", nil, nil, nil, nil, "Uno", nil])
    }
  }

  @Test("A migration computes the values of existing rows")
  func migration() throws {
    let bench = try MigrationBench()
    try bench.open(Self.model(derived: false), [:]) { context in
      let country = context.insert("Country", ["name": "Éire"])
      let author = context.insert("Author", ["name": "Ása", "country": country])
      let one = context.insert("Book", ["title": "1"])
      let two = context.insert("Book", ["title": "2", "sequelOf": one])
      _ = context.insert("Book", ["title": "3", "author": author, "sequelOf": two])
    }
    try bench.open(Self.model()) { context in
      let book = try #require(try context.all("Book", by: "title").last)
      #expect(values(book) == ["3", "Ása", "asa", "Éire", "ÉIRE", "2", "1"])
    }
  }
}
