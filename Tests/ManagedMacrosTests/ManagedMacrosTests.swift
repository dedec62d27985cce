import Foundation
import ManagedMacroPlugin
import ManagedMacros
import OpenCoreData
import SwiftParser
import SwiftSyntax
import SwiftSyntaxMacroExpansion
import SwiftSyntaxMacros
import Testing

@ManagedObject
class Novel: NSManagedObject {
  @Managed var title: String?
  @Managed var pages: Int32
  @Managed("state") var shelf: Shelf
  @Managed var words: [String]?
  @Managed var sequels: Set<Novel>
  @Managed var prequel: Novel?

  enum Shelf: Int16 {
    case open, closed
  }
}

@ManagedObject
final class Thriller: Novel {
  @Managed var victims: Int16
}

@Suite("Properties by macro")
struct ManagedPropertyMacroTests {
  private static let model: NSManagedObjectModel = {
    func attribute(
      _ name: String,
      _ type: NSAttributeType,
      _ value: Any? = nil
    )
      -> NSAttributeDescription
    {
      let attribute = NSAttributeDescription()
      attribute.name = name
      attribute.attributeType = type
      attribute.defaultValue = value
      return attribute
    }
    let novel = NSEntityDescription()
    novel.name = "Novel"
    novel.managedObjectClassName = NSStringFromClass(Novel.self)
    let sequels = NSRelationshipDescription()
    sequels.name = "sequels"
    let prequel = NSRelationshipDescription()
    prequel.name = "prequel"
    prequel.maxCount = 1
    for relationship in [sequels, prequel] { relationship.destinationEntity = novel }
    sequels.inverseRelationship = prequel
    prequel.inverseRelationship = sequels
    novel.properties = [
      attribute("title", .stringAttributeType), attribute("pages", .integer32AttributeType, 0),
      attribute("state", .integer16AttributeType, 1),
      attribute("words", .transformableAttributeType), sequels, prequel,
    ]
    let thriller = NSEntityDescription()
    thriller.name = "Thriller"
    thriller.managedObjectClassName = NSStringFromClass(Thriller.self)
    thriller.properties = [attribute("victims", .integer16AttributeType, 0)]
    novel.subentities = [thriller]
    let model = NSManagedObjectModel()
    model.entities = [novel, thriller]
    return model
  }()

  private let container: NSPersistentContainer

  init() {
    container = NSPersistentContainer(name: "Novels", managedObjectModel: Self.model)
    container.persistentStoreDescriptions = [
      NSPersistentStoreDescription(url: URL(fileURLWithPath: "/dev/null"))
    ]
    container.loadPersistentStores { _, error in #expect(error == nil) }
  }

  @Test("Properties of every kind are read and written")
  func properties() throws {
    let context = container.viewContext
    let novel = Novel(context: context)
    #expect(novel.shelf == .closed)
    novel.title = "One"
    novel.pages += 10
    novel.shelf = .open
    novel.words = ["a"]
    let second = Thriller(context: context)
    novel.sequels.insert(second)
    second.victims = 3
    try context.save()
    context.refreshAllObjects()
    #expect(novel.title == "One")
    #expect(novel.pages == 10)
    #expect(novel.value(forKey: "state") as? Int == 0)
    #expect(novel.words == ["a"])
    #expect(second.prequel == novel)
    #expect(second.victims == 3)
  }

  @Test("Key paths have names, those of inherited properties too")
  func names() {
    #expect(KeyPathNames.name(of: \Novel.title) == "title")
    #expect(KeyPathNames.name(of: \Novel.shelf) == "state")
    #expect(KeyPathNames.name(of: \Thriller.title) == "title")
    #expect(KeyPathNames.name(of: \Thriller.victims) == "victims")
  }
}

@Suite("Expansion of macros")
struct MacroExpansionTests {
  private func expand(_ source: String) -> (text: String, diagnostics: [String]) {
    let file = Parser.parse(source: source)
    let context = BasicMacroExpansionContext(
      sourceFiles: [file: .init(moduleName: "Library", fullFilePath: "Novel.swift")]
    )
    let macros: [String: any Macro.Type] = [
      "Managed": ManagedMacro.self, "ManagedObject": ManagedObjectMacro.self,
    ]
    let expanded = file.expand(
      macros: macros,
      contextGenerator: { (lexicalContext: Syntax) in
        BasicMacroExpansionContext(
          sharingWith: context,
          lexicalContext: lexicalContext.allMacroLexicalContexts()
        )
      }
    )
    return (expanded.description, context.diagnostics.map(\.message))
  }

  @Test("A property expands to two accessors and a static accessor object")
  func property() {
    let expansion = expand("class A: NSManagedObject { @Managed(\"ZName\") var name: String! }")
    #expect(expansion.diagnostics == [])
    #expect(expansion.text.contains("self[Self._accessor_name] = newValue"))
    #expect(expansion.text.contains("ManagedAccessor.property(\"ZName\", of: (String?).self)"))
  }

  @Test("A class's key path names contain its managed properties only")
  func names() {
    let expansion = expand(
      "@ManagedObject class A: NSManagedObject { @Managed var a: Int64; var b: Int64 { a } }"
    )
    #expect(expansion.text.contains("[\\Root.a: \"a\"]"))
  }

  @Test(
    "A declaration that cannot be managed is refused with a reason",
    arguments: [
      ("@Managed let a: Int", "@Managed requires a var with one name"),
      ("@Managed var a = 1", "@Managed needs the type of 'a'"),
      ("@Managed var a: Int = 1", "the model defines the initial value of 'a'"),
      ("@Managed var a: Int { 1 }", "'a' has accessors already"),
      ("@Managed static var a: Int", "@Managed requires an instance property"),
    ]
  )
  func refusals(member: String, message: String) {
    let expansion = expand("class A: NSManagedObject { \(member) }")
    #expect(expansion.diagnostics.contains(message))
  }
}
