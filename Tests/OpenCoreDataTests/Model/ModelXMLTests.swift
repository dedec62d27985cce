import Foundation
import OpenCoreData
import Testing

@Suite("Model files in XML")
struct ModelXMLTests {
  static let blog = """
    <?xml version="1.0" encoding="UTF-8" standalone="yes"?>
    <model type="com.apple.IDECoreDataModeler.DataModel" documentVersion="1.0" \
    userDefinedModelVersionIdentifier="7" usedWithCloudKit="YES">
        <entity name="Post" representedClassName=".Post" isAbstract="YES" elementID="Article">
            <attribute name="title" optional="YES" attributeType="String" minValueString="3" \
    maxValueString="50" regularExpressionString="[a-z]&quot;+"/>
            <attribute name="rating" attributeType="Integer 16" defaultValueString="3" \
    minValueString="0" maxValueString="5" usesScalarValueType="YES"/>
            <attribute name="price" attributeType="Decimal" defaultValueString="12.30"/>
            <attribute name="isPublished" attributeType="Boolean" defaultValueString="YES"/>
            <attribute name="date" attributeType="Date" defaultDateTimeInterval="10.5" \
    minDateTimeInterval="0"/>
            <attribute name="id" attributeType="UUID" \
    defaultValueString="00000000-0000-0000-0000-000000000001" preserveAfterDeletion="YES"/>
            <attribute name="link" attributeType="URI" defaultValueString="https://example.com"/>
            <attribute name="body" optional="YES" attributeType="Binary" \
    allowsExternalBinaryDataStorage="YES" allowsCloudEncryption="YES"/>
            <attribute name="color" optional="YES" attributeType="Transformable" \
    valueTransformerName="ColorTransformer" customClassName="Color"/>
            <attribute name="place" optional="YES" attributeType="Composite" composite="Place"/>
            <attribute name="tagCount" optional="YES" attributeType="Integer 64" derived="YES" \
    derivationExpression="tags.@count"/>
            <attribute name="draft" optional="YES" transient="YES" attributeType="Undefined"/>
            <relationship name="tags" optional="YES" toMany="YES" deletionRule="Nullify" \
    ordered="YES" destinationEntity="Tag" inverseName="posts" inverseEntity="Tag"/>
            <fetchedProperty name="similar" optional="YES">
                <fetchRequest name="fetchedPropertyFetchRequest" entity="Post" \
    predicateString="title == $FETCH_SOURCE.title"/>
            </fetchedProperty>
            <fetchIndex name="byDate">
                <fetchIndexElement property="date" type="Binary" order="descending"/>
                <fetchIndexElement property="title" type="Binary" order="ascending"/>
            </fetchIndex>
            <uniquenessConstraints>
                <uniquenessConstraint>
                    <constraint value="id"/>
                </uniquenessConstraint>
            </uniquenessConstraints>
            <userInfo>
                <entry key="note" value="first"/>
            </userInfo>
        </entity>
        <entity name="ImagePost" representedClassName="ImagePost" parentEntity="Post">
            <attribute name="album" optional="YES" attributeType="String"/>
            <relationship name="data" maxCount="1" deletionRule="Cascade" \
    destinationEntity="ImageData" inverseName="post" inverseEntity="ImageData"/>
        </entity>
        <entity name="ImageData" syncable="YES">
            <attribute name="bytes" optional="YES" attributeType="Binary"/>
            <relationship name="post" optional="YES" maxCount="1" deletionRule="Deny" \
    destinationEntity="ImagePost" inverseName="data" inverseEntity="ImagePost"/>
        </entity>
        <entity name="Tag" representedClassName="Blog.Tag">
            <attribute name="name" optional="YES" attributeType="String"/>
            <relationship name="posts" optional="YES" toMany="YES" deletionRule="No Action" \
    destinationEntity="Post" inverseName="tags" inverseEntity="Post"/>
        </entity>
        <configuration name="Cloud" usedWithCloudKit="YES">
            <memberEntity name="Post"/>
            <memberEntity name="Tag"/>
        </configuration>
        <composite name="Place">
            <attribute name="latitude" optional="YES" attributeType="Double"/>
            <attribute name="longitude" optional="YES" attributeType="Double"/>
        </composite>
        <fetchRequest name="Best" entity="Post" predicateString="rating &gt; $LIMIT" \
    fetchLimit="10" includeSubentities="YES"/>
        <elements><element name="Post" positionX="0" positionY="0" width="1" height="1"/></elements>
    </model>
    """

  @Test("Everything that the model editor writes is read")
  func wholeModel() throws {
    let model = try load(Self.blog)
    #expect(model.entities.count == 4)
    #expect(model.versionIdentifiers == ["7"])
    #expect(model.isUsedWithCloudKit)
    #expect(model.configurations == ["Cloud"])
    #expect(model.entities(forConfigurationName: "Cloud")?.compactMap(\.name) == ["Post", "Tag"])
    #expect(model.cloudKitConfigurations == ["Cloud"])
    #expect(model.entities(forConfigurationName: "Nowhere") == nil)

    let post = try #require(model.entitiesByName["Post"])
    #expect(post.managedObjectClassName == "Post")
    #expect(post.isAbstract)
    #expect(post.renamingIdentifier == "Article")
    #expect(post.userInfo?["note"] as? String == "first")
    #expect(post.uniquenessConstraintNames == [["id"]])
    let attributes = post.attributesByName
    #expect(attributes["rating"]?.defaultValue as? NSNumber == 3)
    #expect(attributes["rating"]?.limits.maximum == 5)
    #expect(
      attributes["price"]?.defaultValue as? NSDecimalNumber == NSDecimalNumber(string: "12.3")
    )
    #expect(attributes["isPublished"]?.defaultValue as? Bool == true)
    #expect(
      attributes["date"]?.defaultValue as? Date == Date(timeIntervalSinceReferenceDate: 10.5)
    )
    #expect(
      attributes["id"]?.defaultValue as? UUID
        == UUID(uuidString: "00000000-0000-0000-0000-000000000001")
    )
    #expect(attributes["id"]?.preservesValueInHistoryOnDeletion == true)
    #expect(attributes["link"]?.defaultValue as? URL == URL(string: "https://example.com"))
    #expect(attributes["title"]?.limits.minimumLength == 3)
    #expect(attributes["title"]?.limits.regularExpression == "[a-z]\"+")
    #expect(attributes["title"]?.validationPredicates.count == 3)
    #expect(attributes["body"]?.allowsExternalBinaryDataStorage == true)
    #expect(attributes["body"]?.allowsCloudEncryption == true)
    #expect(attributes["color"]?.valueTransformerName == "ColorTransformer")
    #expect(attributes["color"]?.attributeValueClassName == "Color")
    let place = try #require(attributes["place"] as? NSCompositeAttributeDescription)
    #expect(place.elements.map(\.name) == ["latitude", "longitude"])
    let count = try #require(attributes["tagCount"] as? NSDerivedAttributeDescription)
    #expect(count.derivationFormat == "tags.@count")
    #expect(count.derivationExpression != nil)
    let tags = try #require(post.relationshipsByName["tags"])
    #expect(tags.isToMany && tags.isOrdered)
    #expect(tags.inverseRelationship?.name == "posts")
    #expect(tags.inverseRelationship?.deleteRule == .noActionDeleteRule)
    let similar = try #require(post.propertiesByName["similar"] as? NSFetchedPropertyDescription)
    #expect(similar.requestTemplate?.predicateFormat == "title == $FETCH_SOURCE.title")
    let index = try #require(post.indexes.first)
    #expect(index.elements.map(\.isAscending) == [false, true])
    #expect(index.entity === post)
    #expect(model.requestTemplates["Best"]?.fetchLimit == 10)

    let image = try #require(model.entitiesByName["ImagePost"])
    #expect(image.superentity === post)
    #expect(image.isKindOf(entity: post))
    #expect(image.propertiesByName["title"] === post.propertiesByName["title"])
    #expect(image.relationshipsByName["data"]?.deleteRule == .cascadeDeleteRule)
    #expect(image.relationshipsByName["data"]?.isToMany == false)
    let data = try #require(model.entitiesByName["ImageData"])
    #expect(data.managedObjectClassName == "NSManagedObject")
    #expect(image.relationships(forDestination: data).map(\.name) == ["data"])
  }

  @Test("A layout numbers inherited attributes first, and to-ones after all attributes")
  func layout() throws {
    let model = try load(Self.blog)
    let post = try #require(model.entitiesByName["Post"])
    let image = try #require(model.entitiesByName["ImagePost"])
    let layout = image.layout
    let inherited = post.layout.attributes.map(\.name)
    #expect(layout.attributes.map(\.name) == inherited + ["album"])
    #expect(layout.attributes.map(\.index) == Array(0..<layout.attributes.count))
    #expect(layout.toOnes.map(\.name) == ["data"])
    #expect(layout.toOnes.first?.rowIndex == layout.attributes.count)
    #expect(layout.toManys.map(\.name) == ["tags"])
    #expect(layout.toManys.first?.inverseIsToMany == true)
    #expect(layout.rowWidth == layout.attributes.count + 1)
    #expect(layout.slot(named: "data") == .toOne(0))
    #expect(layout.slot(named: "similar") == .fetched(0))
    #expect(layout.slot(named: "nothing") == nil)
    #expect(layout.rootEntity === post)
    #expect(layout.isMemberOrSub(of: post))
    #expect(!post.layout.isMemberOrSub(of: image))
    #expect(post.layout.concreteSubentities.compactMap(\.name) == ["Post", "ImagePost"])
    #expect(image.layout === layout)
    let rating = layout.attributes.first { $0.name == "rating" }
    #expect(rating?.defaultRowValue == .integer(3))
    let published = layout.attributes.first { $0.name == "isPublished" }
    #expect(published?.defaultRowValue == .integer(1))
    #expect(model.isFrozen)
  }

  @Test("A model in use cannot be changed")
  func frozen() async {
    await #expect(processExitsWith: .failure) {
      let model = NSManagedObjectModel()
      let entity = NSEntityDescription()
      entity.name = "Post"
      model.entities = [entity]
      model.freeze()
      entity.name = "Other"
    }
  }

  @Test("Class names are looked up in the app's modules if the model does not specify the module")
  func classCandidates() throws {
    let model = try load(Self.blog)
    let post = try #require(model.entitiesByName["Post"])
    let names = ManagedObjectClassResolver.candidates(for: post)
    #expect(names.allSatisfy { $0.hasSuffix("Post") })
    #expect(names.last == "Post")
    let tag = try #require(model.entitiesByName["Tag"])
    #expect(ManagedObjectClassResolver.candidates(for: tag).first == "Blog.Tag")
    let data = try #require(model.entitiesByName["ImageData"])
    #expect(ManagedObjectClassResolver.candidates(for: data).isEmpty)
  }

  @Test(
    "The classes of a model in a target's resources are in that target",
    arguments: ["app_Blog.resources", "app_Blog-tool.resources"]
  )
  func classModules(folder: String) {
    let url = URL(fileURLWithPath: "/build/\(folder)/Blog.momd")
    #expect(
      ManagedObjectClassResolver.candidates(className: "Post", near: url).first == "Blog.Post"
    )
  }

  @Test("Archiving a model keeps all its contents")
  func archive() throws {
    let model = try load(Self.blog)
    let again = try ModelArchive.model(fromModelCache: ModelArchive.modelCache(for: model))
    #expect(ModelText.describe(again) == ModelText.describe(model))
    #expect(again.entityVersionHashesByName == model.entityVersionHashesByName)
    #expect(try ModelArchive.modelCache(for: again) == ModelArchive.modelCache(for: model))
  }

  @Test(
    "A malformed file is refused with line, element and the expected contents",
    arguments: [
      ("", 1, "a <model> element"),
      ("<model>", 1, "</model>"),
      ("<html/>", 1, "<model>"),
      ("<model>\n<entity/>\n</model>", 2, "name="),
      ("<model>\n<enttiy name=\"A\"/>\n</model>", 2, "<entity>"),
      (
        "<model>\n<entity name=\"A\">\n<attribute attributeType=\"String\"/></entity></model>", 3,
        "name="
      ),
      (
        "<model>\n<entity name=\"A\">\n<attribute name=\"a\" attributeType=\"Text\"/></entity></model>",
        3, "String"
      ),
      (
        "<model>\n<entity name=\"A\">\n<attribute name=\"a\" optional=\"MAYBE\"/></entity></model>",
        3,
        "YES or NO"
      ),
      ("<model>\n<entity name=\"A\" parentEntity=\"B\"/>\n</model>", 2, "an entity of this model"),
      (
        "<model>\n<entity name=\"A\" parentEntity=\"B\"/>\n<entity name=\"B\" parentEntity=\"A\"/></model>",
        2, "without one"
      ),
      ("<model>\n<entity name=\"A\"/>\n<entity name=\"A\"/></model>", 3, "differ"),
      (
        "<model>\n<entity name=\"A\">\n<relationship name=\"r\" destinationEntity=\"Z\"/></entity></model>",
        3, "an entity of this model"
      ),
      (
        "<model>\n<entity name=\"A\">\n<relationship name=\"r\"/></entity></model>", 3,
        "destinationEntity="
      ),
      (
        "<model>\n<entity name=\"A\">\n<relationship name=\"r\" destinationEntity=\"A\" "
          + "inverseName=\"q\" inverseEntity=\"A\"/></entity></model>", 3, "relationship of 'A'"
      ),
      (
        "<model>\n<entity name=\"A\">\n<relationship name=\"r\" destinationEntity=\"A\" "
          + "deletionRule=\"Explode\"/></entity></model>", 3, "Cascade"
      ),
      (
        "<model>\n<entity name=\"A\"/>\n<configuration name=\"C\"><memberEntity name=\"B\"/>"
          + "</configuration></model>", 3, "an entity of this model"
      ),
      (
        "<model>\n<entity name=\"A\">\n<attribute name=\"c\" attributeType=\"Composite\" "
          + "composite=\"C\"/></entity><composite name=\"C\"><attribute name=\"d\" "
          + "attributeType=\"Composite\" composite=\"C\"/></composite></model>", 3,
        "plain attributes"
      ),
    ]
  )
  func malformed(xml: String, line: Int, expected: String) throws {
    let error = #expect(throws: ModelFileError.self) { try load(xml) }
    #expect(error?.line == line, "\(String(describing: error))")
    #expect(error?.expected.contains(expected) == true, "\(String(describing: error))")
    #expect(error?.file.hasSuffix("contents") == true)
  }

  @Test("Errors of invalid links name both ends")
  func brokenLinks() throws {
    let error = #expect(throws: ModelFileError.self) {
      try load(
        """
        <model><entity name="Post"><relationship name="tags" destinationEntity="Tag" \
        inverseName="posts" inverseEntity="Tag"/></entity><entity name="Tag"/></model>
        """
      )
    }
    #expect("\(try #require(error))".contains("'Tag.posts' of 'Post.tags'"))
  }

  @Test("A model that is truncated at any byte is refused and never crashes")
  func truncated() throws {
    let bytes = Data(Self.blog.utf8)
    for length in stride(from: 0, to: bytes.count - 20, by: 37) {
      #expect(throws: ModelFileError.self) { try load(Data(bytes.prefix(length))) }
    }
  }

  @Test("A model with flipped bytes is read or refused and never crashes")
  func flippedXML() throws {
    var numbers = SeededNumbers(seed: 11)
    let original = [UInt8](Self.blog.utf8)
    for _ in 0..<400 {
      var bytes = original
      for _ in 0..<Int.random(in: 1...4, using: &numbers) {
        let place = Int.random(in: 0..<bytes.count, using: &numbers)
        bytes[place] = UInt8.random(in: 0...255, using: &numbers)
      }
      exercise { try load(Data(bytes)) }
    }
  }

  @Test("A compiled model with flipped bytes is read or refused and never crashes")
  func flippedArchive() throws {
    var numbers = SeededNumbers(seed: 12)
    let original = [UInt8](ModelArchive.archive(of: try load(Self.blog)))
    for _ in 0..<300 {
      var bytes = original
      for _ in 0..<Int.random(in: 1...6, using: &numbers) {
        let place = Int.random(in: 0..<bytes.count, using: &numbers)
        bytes[place] =
          Bool.random(using: &numbers)
          ? bytes[place] ^ (1 << UInt8.random(in: 0..<8, using: &numbers))
          : UInt8.random(in: 0...255, using: &numbers)
      }
      if Int.random(in: 0..<10, using: &numbers) == 0 {
        bytes.removeLast(Int.random(in: 0..<bytes.count, using: &numbers))
      }
      exercise { try ModelArchive.model(fromArchive: Data(bytes), file: "flipped.mom") }
    }
  }

  @Test("A model cache with flipped bytes is read or refused and never crashes")
  func flippedCache() throws {
    var numbers = SeededNumbers(seed: 13)
    let original = [UInt8](try ModelArchive.modelCache(for: try load(Self.blog)))
    for _ in 0..<500 {
      var bytes = original
      let place = Int.random(in: 0..<bytes.count, using: &numbers)
      bytes[place] ^= 1 << UInt8.random(in: 0..<8, using: &numbers)
      exercise { try ModelArchive.model(fromModelCache: Data(bytes)) }
    }
  }

  @Test("The error for a missing model lists the searched paths")
  func locating() throws {
    let error = #expect(throws: ModelLocator.NotFoundError.self) {
      try ModelLocator.locate(name: "NoSuchModel")
    }
    #expect(error?.searched.isEmpty == false)
    #expect("\(try #require(error))".contains("NoSuchModel.momd"))
    #expect(NSManagedObjectModel(contentsOf: URL(fileURLWithPath: "/no/such.momd")) == nil)
  }

  @Test("The main bundle has the models of the resource folders beside the program")
  func mainBundle() throws {
    let names = ModelLocator.allModelFiles(in: [Bundle.main]).map(\.lastPathComponent)
    #expect(names.contains("Blog.momd"))
  }

  @Test("The current version is the one in the marker file")
  func currentVersion() throws {
    let files = FileManager.default
    let folder = files.temporaryDirectory.appendingPathComponent("model-\(UUID().uuidString)")
    defer { try? files.removeItem(at: folder) }
    let package = folder.appendingPathComponent("Blog.xcdatamodeld")
    for (version, entity) in [("Blog", "Old"), ("Blog 2", "New")] {
      let place = package.appendingPathComponent("\(version).xcdatamodel")
      try files.createDirectory(at: place, withIntermediateDirectories: true)
      try Data("<model><entity name=\"\(entity)\"/></model>".utf8)
        .write(to: place.appendingPathComponent("contents"))
    }
    #expect(try ModelFile.load(contentsOf: package).entitiesByName["Old"] != nil)
    let marker = package.appendingPathComponent(".xccurrentversion")
    func mark(_ name: String) throws {
      let plist = ["_XCCurrentVersionName": name]
      try PropertyListSerialization.data(fromPropertyList: plist, format: .xml, options: 0)
        .write(to: marker)
    }
    try mark("Blog 2.xcdatamodel")
    #expect(try ModelFile.load(contentsOf: package).entitiesByName["New"] != nil)
    #expect(try ModelFile.versions(of: package).map(\.name) == ["Blog", "Blog 2"])
    try mark("Blog 3.xcdatamodel")
    let error = #expect(throws: ModelFileError.self) { try ModelFile.load(contentsOf: package) }
    #expect(error?.found.contains("Blog 3") == true)
  }

  @Test("Merging combines the entities of models")
  func merging() throws {
    let one = try load("<model><entity name=\"A\"/></model>")
    let third = try load("<model><entity name=\"B\"/></model>")
    let merged = try #require(NSManagedObjectModel(byMerging: [one, third]))
    #expect(Set(merged.entitiesByName.keys) == ["A", "B"])
  }

  @Test("A model built in code has the hashes of the same model in a file")
  func builtInCode() throws {
    let post = NSEntityDescription()
    post.name = "Post"
    let tag = NSEntityDescription()
    tag.name = "Tag"
    let title = NSAttributeDescription()
    title.name = "title"
    title.type = .string
    let tags = NSRelationshipDescription()
    tags.name = "tags"
    tags.destinationEntity = tag
    let posts = NSRelationshipDescription()
    posts.name = "posts"
    posts.destinationEntity = post
    posts.inverseRelationship = tags
    tags.inverseRelationship = posts
    post.properties = [title, tags]
    tag.properties = [posts]
    let model = NSManagedObjectModel()
    model.entities = [post, tag]
    let file = try load(
      """
      <model><entity name="Post"><attribute name="title" optional="YES" attributeType="String"/>\
      <relationship name="tags" optional="YES" toMany="YES" destinationEntity="Tag" \
      inverseName="posts" inverseEntity="Tag"/></entity><entity name="Tag">\
      <relationship name="posts" optional="YES" toMany="YES" destinationEntity="Post" \
      inverseName="tags" inverseEntity="Post"/></entity></model>
      """
    )
    #expect(model.entityVersionHashesByName == file.entityVersionHashesByName)
    #expect(model.versionChecksum == file.versionChecksum)
  }

  private func load(_ xml: String) throws -> NSManagedObjectModel {
    try load(Data(xml.utf8))
  }

  private func load(_ bytes: Data) throws -> NSManagedObjectModel {
    let files = FileManager.default
    let folder = files.temporaryDirectory.appendingPathComponent("model-\(UUID().uuidString)")
    try files.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? files.removeItem(at: folder) }
    let file = folder.appendingPathComponent("contents")
    try bytes.write(to: file)
    return try ModelFile.load(contentsOf: file)
  }

  /// A model that can be loaded must also be frozen and archived without a trap.
  private func exercise(_ load: () throws -> NSManagedObjectModel) {
    do {
      let model = try load()
      model.freeze()
      _ = try ModelArchive.model(fromModelCache: ModelArchive.modelCache(for: model))
    } catch is ModelFileError {
      // The expected result for a damaged file.
    } catch {
      Issue.record("an error of another kind: \(error)")
    }
  }

  @Test(
    "A default value of a former attribute type is converted to the present type",
    arguments: [
      ("Integer 32", "NO", 0), ("Integer 16", "YES", 1), ("Double", "NO", 0), ("Float", "YES", 1),
      ("Boolean", "0.0", 0), ("Boolean", "2", 1), ("Integer 64", "0.0", 0),
      ("Integer 16", "many", 0), ("Integer 32", "12 apples", 12), ("Integer 64", "1.5", 1),
      ("Double", "many", 0), ("Decimal", "-3 or so", -3), ("Boolean", "many", 0),
      ("Integer 16", "70000", 0),
    ] as [(String, String, Double)]
  )
  func leftoverDefault(type: String, text: String, expected: Double) throws {
    let xml =
      "<model><entity name=\"A\"><attribute name=\"a\" attributeType=\"\(type)\" "
      + "defaultValueString=\"\(text)\"/></entity></model>"
    let model = try load(xml)
    let attribute = try #require(model.entitiesByName["A"]?.attributesByName["a"])
    #expect((attribute.defaultValue as? NSNumber)?.doubleValue == expected)
  }

  @Test("A validation limit left over from a former attribute type is ignored")
  func leftoverLimit() throws {
    let xml =
      "<model><entity name=\"A\"><attribute name=\"a\" attributeType=\"Integer 32\" "
      + "minValueString=\"few\" maxValueString=\"9\"/><attribute name=\"b\" "
      + "attributeType=\"String\" minValueString=\"0.5\"/></entity></model>"
    let attributes = try #require(try load(xml).entitiesByName["A"]?.attributesByName)
    #expect(attributes["a"]?.validationPredicates.map(\.formatString) == ["SELF <= 9"])
    #expect(attributes["b"]?.validationPredicates.isEmpty == true)
  }
}
