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

  @Test("A sum over a many-to-many relationship follows its edges and the summed values")
  func sumOverEdges() throws {
    let total = Parts.derived("total", .integer64AttributeType, "tags.weight.@sum")
    let post = Parts.entity("Post", [total])
    let tag = Parts.entity("Tag", [Parts.number("weight")])
    Parts.relate(post, "tags", toMany: true, tag, "posts", toMany: true)
    let bench = try MigrationBench()
    try bench.open(MigrationBench.model(post, tag), [:]) { context in
      let (light, heavy) = (
        context.insert("Tag", ["weight": 2]), context.insert("Tag", ["weight": 3])
      )
      let one = context.insert("Post", ["tags": NSSet(array: [light, heavy])])
      let two = context.insert("Post", ["tags": NSSet(array: [heavy])])
      func expect(
        _ expected: [Int],
        _ location: SourceLocation = #_sourceLocation
      ) throws {
        try context.save()
        context.refreshAllObjects()
        let totals = [one, two].map { $0.value(forKey: "total") as? Int }
        #expect(totals == expected, sourceLocation: location)
      }
      try expect([5, 3])
      heavy.setValue(10, forKey: "weight")
      try expect([12, 10])
      light.setValue(NSSet(array: [one, two]), forKey: "posts")
      try expect([12, 12])
      two.setValue(NSSet(array: [light]), forKey: "tags")
      try expect([12, 2])
      context.delete(heavy)
      try expect([2, 2])
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
