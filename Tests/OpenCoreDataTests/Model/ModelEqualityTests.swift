import Foundation
import OpenCoreData
import Testing

@Suite("Equality of models and their descriptions")
struct ModelEqualityTests {
  @Test("A copied model equals its original until it is changed")
  func models() throws {
    let model = FetchWorld.model()
    model.versionIdentifiers = ["1"]
    model.setEntities([model.entities[0]], forConfigurationName: "Some")
    let copy = try #require(model.copy() as? NSManagedObjectModel)
    #expect(copy == model)
    #expect(copy.hash == model.hash)
    #expect(copy.entitiesByName["Post"] == model.entitiesByName["Post"])
    try #require(copy.entitiesByName["Post"]?.attributesByName["views"]).isOptional = false
    #expect(copy != model)
    #expect(copy.entitiesByName["Post"] != model.entitiesByName["Post"])
    #expect(copy.entitiesByName["Tag"] == model.entitiesByName["Tag"])
  }

  @Test("Properties are compared by all their attributes", arguments: 0..<6)
  func properties(_ change: Int) throws {
    let world = FetchWorld.model()
    let post = try #require(world.entitiesByName["Post"])
    let views = try #require(post.attributesByName["views"])
    let author = try #require(post.relationshipsByName["author"])
    let copy = try #require(views.copy() as? NSAttributeDescription)
    let link = try #require(author.copy() as? NSRelationshipDescription)
    #expect(copy == views)
    #expect(link == author)
    #expect(views != author)
    switch change {
    case 0: copy.name = "looks"
    case 1: copy.attributeType = .doubleAttributeType
    case 2: copy.defaultValue = 7
    case 3: copy.userInfo = ["note": "mine"]
    case 4:
      copy.setValidationPredicates([NSPredicate(format: "SELF > 3")], withValidationWarnings: [])
    default:
      link.deleteRule = .cascadeDeleteRule
      #expect(link != author)
      return
    }
    #expect(copy != views)
  }

  @Test("Two models read from the same text are equal, and so are models in use")
  func frozen() throws {
    let (first, second) = (FetchWorld.model(), FetchWorld.model())
    #expect(first == second)
    let container = NSPersistentContainer(name: "World", managedObjectModel: first)
    #expect(container.managedObjectModel == second)
  }
}
