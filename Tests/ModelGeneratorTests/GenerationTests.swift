import Foundation
import ModelGenerator
import OpenCoreData
import Testing

@Suite("Generating code for a module")
struct GenerationTests {
  private func generate(
    _ source: String,
    model: NSManagedObjectModel? = nil
  ) -> ModuleGenerator.Result {
    ModuleGenerator(
      module: "Blog",
      models: model.map { [$0] } ?? [],
      sources: [SourceFile(path: "Sources/Blog/Post.swift", text: source)]
    ).generate()
  }

  @Test(
    "A member that cannot get an accessor is refused with its file, line and column",
    arguments: [
      ("@NSManaged var other: OtherModule.Thing?", "the type 'OtherModule.Thing' is not declared"),
      ("@NSManaged var pair: (Int, Int)", "is no type that an @NSManaged member can have"),
      ("@NSManaged var list: Box<Int>", "is generic"),
      ("@NSManaged var coder: Codable", "'Codable' is not declared"),
      ("@NSManaged var proto: any Named", "is no type that an @NSManaged member can have"),
      ("@NSManaged var named: Named", "is a protocol"),
      ("@NSManaged var größe: Int", "use the letters of ASCII"),
      ("@NSManaged func countOfTags() -> Int", "no accessor can be generated for the method"),
      ("@NSManaged fileprivate var kind: Kind", "'Kind' is private to its file"),
      ("@NSManaged fileprivate var part: Part", "'Part' is private to its file"),
    ]
  )
  func refusals(member: String, message: String) throws {
    let result = generate(
      "struct Box<T> {}; private enum Kind: Int { case a }; private class Part: NSObject {}\n"
        + "protocol Named {}\nclass Post: NSManagedObject {\n  \(member)\n}"
    )
    let error = try #require(result.errors.first)
    #expect(error.description.hasPrefix("Sources/Blog/Post.swift:4:3: error: "))
    #expect(error.message.contains(message))
  }

  @Test(
    "Classes that cannot be an entity's are refused",
    arguments: [
      ("class Post<T>: NSManagedObject { @NSManaged var a: Int }", "is generic"),
      ("struct Post { @NSManaged var a: Int }", "is not a class"),
      ("extension Other { @NSManaged var a: Int }", "is not declared in the module 'Blog'"),
    ]
  )
  func classes(source: String, message: String) throws {
    let error = try #require(generate(source).errors.first)
    #expect(error.message.contains(message))
  }

  @Test("A value class of the global namespace, which the editor writes with a dot, has no dot")
  func globalValueClass() {
    let attribute = NSAttributeDescription()
    attribute.name = "tags"
    attribute.attributeType = .transformableAttributeType
    attribute.attributeValueClassName = ".NSArray"
    let entity = NSEntityDescription()
    entity.name = "Post"
    entity.managedObjectClassName = "Post"
    entity.properties = [attribute]
    let model = NSManagedObjectModel()
    model.entities = [entity]
    let properties = EntityDeclaration.declarations(in: model).first?.properties
    #expect(properties?.map(\.type) == ["NSArray?"])
  }

  @Test("A type that is private to a file does not hide another file's type of its name")
  func privateNames() {
    let result = ModuleGenerator(
      module: "Blog",
      sources: [
        SourceFile(
          path: "A.swift",
          text: "private enum Data { case none }\nprivate struct Kind {}"
        ),
        SourceFile(
          path: "B.swift",
          text: """
            enum Kind: Int { case a }
            private class Post: NSManagedObject { @NSManaged var a: Data; @NSManaged var kind: Kind }
            """
        ),
        SourceFile(
          path: "C.swift",
          text: "private class Post: NSManagedObject { @NSManaged var a: Data }"
        ),
      ]
    ).generate()
    #expect(result.errors == [])
    #expect(result.source.contains("of: (Kind).self"))
    let symbols = result.source.matches(of: /\$s4Blog4Post33_\w+LLC1a20Foundation\w+/)
    #expect(Set(symbols.map(\.output)).count == 4)
  }

  @Test("Members keep their #if conditions, and members for Objective-C are omitted")
  func conditions() {
    let result = generate(
      """
      class Post: NSManagedObject {
        #if canImport(ObjectiveC)
        @NSManaged var apple: Foreign
        #elseif DEBUG
        @NSManaged var debug: Int
        #else
        @NSManaged var other: Int
        #endif
      }
      """
    )
    #expect(result.errors == [])
    #expect(!result.source.contains("apple"))
    #expect(result.source.contains("#if (!(canImport(ObjectiveC))) && (DEBUG)"))
    #expect(result.source.contains("#if (!(canImport(ObjectiveC))) && (!(DEBUG))"))
  }

  @Test("Members marked for Objective-C are in a table of names, and others are not")
  func namedMembers() {
    let result = generate(
      """
      class Post: NSManagedObject {
        @objc var first: String { "" }
        @objc(other) var second: String { "" }
        #if canImport(ObjectiveC)
        @objc
        #endif
        func validateTitle(_ value: AutoreleasingUnsafeMutablePointer<AnyObject?>) throws {}
        @objc class func keyPathsForValuesAffectingFirst() -> Set<String> { [] }
        var plain: String { "" }
        @objc private var hidden: String { "" }
        @objc var slow: String { get async { "" } }
        @objc static var shared: String { "" }
        @MainActor @objc var shown: String { "" }
        @OtherActor @objc var foreign: String { "" }
        @objc func validate(_ value: AutoreleasingUnsafeMutablePointer<AnyObject?>) throws {}
        @objc func validateAll(_ other: Int) throws {}
      }
      @objcMembers class Note: Post { var third: Int = 0 }
      @MainActor extension Post { @objc var title: String { "" } }
      @OtherActor extension Post { @objc var remote: String { "" } }
      class View: NSObject { @objc var fourth: Int { 0 } }
      """
    )
    #expect(result.errors == [])
    #expect(result.source.contains(#"members.add("first", \Root.first)"#))
    #expect(result.source.contains(#"members.add("shown", \Root.shown)"#))
    #expect(result.source.contains(#"members.add("title", \Root.title)"#))
    #expect(result.source.contains(#"members.add("other", \Root.second)"#))
    #expect(result.source.contains(#"members.add("third", \Root.third)"#))
    #expect(
      result.source.contains(
        #"members.addRule("Title") { try unsafeDowncast($0, to: Root.self).validateTitle($1) }"#
      )
    )
    #expect(
      result.source.contains(
        #"members.addDependencies("First") { Root.keyPathsForValuesAffectingFirst() }"#
      )
    )
    let others = [
      "plain", "hidden", "slow", "shared", "foreign", "remote", "fourth", "validateAll",
    ]
    for name in others {
      #expect(!result.source.contains("Root.\(name)") && !result.source.contains(".\(name)("))
    }
  }

  @Test("Overrides of managed properties are in the table of names without a mark")
  func overrides() {
    let result = generate(
      """
      class Note: NSManagedObject {
        @NSManaged var managed: Int
        @objc var marked: Int { 0 }
        var plain: Int { 0 }
      }
      class Middle: Note { override var managed: Int { get { 1 } set {} } }
      class Post: Middle {
        override var managed: Int { get { 2 } set {} }
        override var marked: Int { 1 }
        override var plain: Int { 1 }
        override var description: String { "" }
        override private(set) var other: Int { get { 1 } set {} }
        @Managed @objc var macro: Int
      }
      """
    )
    #expect(result.errors == [])
    let lines = result.source.split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }
    #expect(lines.filter { $0 == #"members.add("managed", \Root.managed)"# }.count == 2)
    #expect(lines.filter { $0 == #"members.add("marked", \Root.marked)"# }.count == 2)
    #expect(result.source.contains("Root.description"))
    #expect(!result.source.contains("Root.plain") && !result.source.contains("Root.macro"))
  }

  @Test("Transformers that can be made without arguments are in a table of names")
  func transformers() {
    let result = generate(
      """
      @objc(ColorTransformer) final class Color: ValueTransformer {}
      class Base: NSSecureUnarchiveFromDataTransformer { init(_ number: Int = 1) { super.init() } }
      final class Derived: Base {}
      class Given: ValueTransformer { init(key: String) { super.init() } }
      class GivenToo: Given {}
      private final class Hidden: ValueTransformer {}
      enum Outer { final class Inner: Foundation.ValueTransformer {} }
      final class Other: NSObject {}
      """
    )
    #expect(result.errors == [])
    let calls = result.source.split(separator: "\n")
      .map { $0.trimmingCharacters(in: .whitespaces) }.filter { $0.hasPrefix("if [") }
    #expect(
      calls == [
        #"if ["Base", "Blog.Base"].contains(name) { return Base() }"#,
        #"if ["Blog.Color", "ColorTransformer"].contains(name) { return Color() }"#,
        #"if ["Blog.Derived", "Derived"].contains(name) { return Derived() }"#,
        #"if ["Blog.Outer.Inner", "Inner"].contains(name) { return Outer.Inner() }"#,
      ]
    )
  }

  @Test("The same input gives the same text")
  func determinism() {
    let source = "class Post: NSManagedObject { @NSManaged var b: Int; @NSManaged var a: Int }"
    #expect(generate(source).source == generate(source).source)
  }

  @Test("A module that declares NSExpression itself gets no alias")
  func aliases() {
    #expect(
      generate("").source.contains("public typealias NSExpression = OpenCoreData.NSExpression")
    )
    #expect(
      !generate("typealias NSExpression = Mine").source.contains(
        "typealias NSExpression = OpenCoreData"
      )
    )
  }

  @Test("The model's code generation setting decides an entity's classes")
  func entities() {
    let model = Self.model
    let result = generate("class Author: NSManagedObject {}", model: model)
    #expect(result.errors == [])
    #expect(result.source.contains("nonisolated public class Post: NSManagedObject {"))
    #expect(!result.source.contains("class Author: NSManagedObject"))
    #expect(result.source.contains("public nonisolated var name: String? {"))
    #expect(result.source.contains("public nonisolated var tags: NSSet? {"))
    #expect(result.source.contains("public nonisolated var typedTags: Set<NSManagedObject> {"))
    #expect(!result.source.contains("class Manual"))
  }

  @Test("Generated files have Xcode's names, and a file the developer may edit is written once")
  func files() {
    let files = ModelClassFiles().files(for: Self.model)
    #expect(
      files.map(\.name) == [
        "Author+CoreDataClass.swift", "Author+CoreDataProperties.swift",
        "Post+CoreDataClass.swift", "Post+CoreDataProperties.swift", "ManagedKeyPathNames.swift",
      ]
    )
    #expect(files.map(\.belongsToDeveloper) == [true, false, false, false, false])
    let all = ModelClassFiles().files(for: Self.model, includingManual: true)
    #expect(all.contains { $0.name == "Manual+CoreDataProperties.swift" })
  }

  @Test("A class of several models is generated where any of them asks for it")
  func classesOfSeveralModels() {
    func model(_ generation: String?) -> NSManagedObjectModel {
      let entity = NSEntityDescription()
      entity.name = "Category"
      entity.managedObjectClassName = "Category"
      entity.codeGenerationType = generation
      let attribute = NSAttributeDescription()
      attribute.name = generation ?? "manual"
      attribute.attributeType = .stringAttributeType
      entity.properties = [attribute]
      let model = NSManagedObjectModel()
      model.entities = [entity]
      return model
    }
    let source = ModuleGenerator(
      module: "Shop",
      models: [model(nil), model("category"), model("class"), model("class")]
    ).generate().source
    #expect(source.components(separatedBy: "public class Category: NSManagedObject").count == 2)
    #expect(source.contains("var `class`: String?"))
    #expect(!source.contains("var category: String?"))
  }

  private static var model: NSManagedObjectModel {
    func entity(_ name: String, _ generation: String?) -> NSEntityDescription {
      let entity = NSEntityDescription()
      entity.name = name
      entity.managedObjectClassName = ".\(name)"
      entity.codeGenerationType = generation
      let attribute = NSAttributeDescription()
      attribute.name = "name"
      attribute.attributeType = .stringAttributeType
      attribute.isOptional = false
      entity.properties = [attribute]
      return entity
    }
    let tag = NSEntityDescription()
    tag.name = "Tag"
    let post = entity("Post", "class")
    let tags = NSRelationshipDescription()
    tags.name = "tags"
    tags.destinationEntity = tag
    post.properties += [tags]
    let model = NSManagedObjectModel()
    model.entities = [post, entity("Author", "category"), entity("Manual", nil), tag]
    return model
  }
}

@Suite("Compiling models")
struct ModelCompilerTests {
  @Test("A compiled model has every version, the current one and the same hashes")
  func compile() throws {
    let folder = FileManager.default.temporaryDirectory
      .appendingPathComponent("models-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: folder) }
    let package = folder.appendingPathComponent("Shop.xcdatamodeld")
    for (version, type) in [("Shop", "String"), ("Shop 2", "Integer 64")] {
      let url = package.appendingPathComponent("\(version).xcdatamodel")
      try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
      let text = """
        <model><entity name="Item" representedClassName="Item" codeGenerationType="class">
        <attribute name="code" optional="YES" attributeType="\(type)"/></entity></model>
        """
      try Data(text.utf8).write(to: url.appendingPathComponent("contents"))
    }
    let marker = """
      <?xml version="1.0" encoding="UTF-8"?><plist version="1.0"><dict>
      <key>_XCCurrentVersionName</key><string>Shop 2.xcdatamodel</string></dict></plist>
      """
    try Data(marker.utf8).write(to: package.appendingPathComponent(".xccurrentversion"))

    let compiled = folder.appendingPathComponent("Shop.momd")
    try ModelCompiler.compile(package, into: compiled)
    let bytes = try Data(contentsOf: compiled.appendingPathComponent("Shop 2.mom"))
    try ModelCompiler.compile(package, into: compiled)
    #expect(try Data(contentsOf: compiled.appendingPathComponent("Shop 2.mom")) == bytes)
    let model = try #require(NSManagedObjectModel(contentsOf: compiled))
    let source = try ModelFile.load(contentsOf: package)
    #expect(model.entityVersionHashesByName == source.entityVersionHashesByName)
    let code = model.entitiesByName["Item"]?.attributesByName["code"]
    #expect(code?.attributeType == .integer64AttributeType)
    #expect(try ModelFile.versions(of: compiled).map(\.name) == ["Shop", "Shop 2"])
  }
}
