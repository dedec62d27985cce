import Foundation
import OpenCoreData
import Testing

@Suite("The user info of inferred entity mappings")
struct InferredMappingInfoTests {
  private typealias Parts = ModelParts

  private static func model(_ properties: [NSPropertyDescription]) -> NSManagedObjectModel {
    let books = NSFetchedPropertyDescription()
    books.name = "recent"
    let author = Parts.entity("Author", properties + [books])
    let book = Parts.entity("Book", [Parts.text("title")])
    Parts.relate(author, "books", toMany: true, book, "author")
    return MigrationBench.model(author, book)
  }

  @Test("An inferred mapping names the properties that it maps, adds and removes")
  func names() throws {
    let mappings = try NSMappingModel.inferredMappingModel(
      forSourceModel: Self.model([Parts.text("name"), Parts.text("site")]),
      destinationModel: Self.model([Parts.text("alias", former: "name"), Parts.text("city")])
    )
    let author = try #require(mappings.entityMappings.first { $0.sourceEntityName == "Author" })
    #expect(author.mappingType == .transformEntityMappingType)
    #expect(author.userInfo?["mappedProperties"] as? Set<String> == ["alias", "books"])
    #expect(author.userInfo?["addedProperties"] as? Set<String> == ["city"])
    #expect(author.userInfo?["removedProperties"] as? Set<String> == ["site"])
    #expect(author.attributeMappings?.map(\.name) == ["alias"])
    let book = try #require(mappings.entityMappings.first { $0.sourceEntityName == "Book" })
    #expect(book.userInfo?["mappedProperties"] as? Set<String> == ["author", "title"])
    #expect(book.userInfo?["addedProperties"] as? Set<String> == [])
    #expect(book.userInfo?["removedProperties"] as? Set<String> == [])
  }
}
