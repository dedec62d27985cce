import Foundation
import OpenCoreData
import Testing

@Suite(
  "Mapping model files",
  .enabled(if: Corpus.isPresent, "the corpus is not here: see WATERSHED_SHARED")
)
struct MappingFileTests {
  private static let files: [URL] = {
    guard let folder = Corpus.folder?.appendingPathComponent("models/_mapping") else { return [] }
    let found = try? FileManager.default.contentsOfDirectory(
      at: folder,
      includingPropertiesForKeys: nil
    )
    return (found ?? []).filter { $0.pathExtension == "xcmappingmodel" }
      .sorted { $0.path < $1.path }
  }()

  @Test("Every mapping model of Xcode can be read")
  func everyFile() throws {
    #expect(!Self.files.isEmpty)
    for file in Self.files {
      let place: Comment = "\(file.lastPathComponent)"
      let model = try #require(NSMappingModel(contentsOf: file), place)
      let mappings = try #require(model.entityMappings)
      #expect(!mappings.isEmpty, place)
      for mapping in mappings {
        #expect(mapping.name?.isEmpty == false, place)
        #expect(mapping.sourceEntityName != nil || mapping.destinationEntityName != nil, place)
        let names = (mapping.attributeMappings ?? []).compactMap(\.name)
        #expect(Set(names).count == names.count, place)
      }
    }
  }

  @Test("A compiled mapping model equals the one that it was compiled from")
  func compiled() throws {
    let folder = try #require(Corpus.folder)
    let compiled = try #require(
      NSMappingModel(
        contentsOf: folder.appendingPathComponent("moms/alemar11__CoreDataPlus__V2toV3.cdm")
      )
    )
    let source = try #require(
      NSMappingModel(
        contentsOf: folder.appendingPathComponent(
          "models/_mapping/alemar11__CoreDataPlus__V2toV3.xcmappingmodel"
        )
      )
    )
    #expect(
      Set(compiled.entityMappingsByName.keys) == Set(source.entityMappingsByName.keys)
    )
    for (name, mapping) in compiled.entityMappingsByName {
      let other = try #require(source.entityMappingsByName[name])
      #expect(mapping.sourceEntityName == other.sourceEntityName)
      #expect(mapping.destinationEntityName == other.destinationEntityName)
      #expect(mapping.entityMigrationPolicyClassName == other.entityMigrationPolicyClassName)
      func texts(_ properties: [NSPropertyMapping]?) -> [String: String?] {
        Dictionary(
          (properties ?? []).map { ($0.name ?? "", $0.valueExpression?.description) },
          uniquingKeysWith: { first, _ in first }
        )
      }
      #expect(texts(mapping.attributeMappings) == texts(other.attributeMappings))
      // The editor computes a relationship's default expression when it compiles.
      let relationships = texts(other.relationshipMappings)
      for (property, text) in texts(mapping.relationshipMappings) where text != nil {
        #expect(relationships[property] != nil, "\(name).\(property)")
      }
    }
    #expect(compiled.entityMappingsByName["CarToCar"]?.mappingType == .customEntityMappingType)
    #expect(compiled.entityMappingsByName["PersonToPerson"]?.mappingType == .copyEntityMappingType)
  }

  @Test("A mapping model is found by its source and destination models")
  func finding() throws {
    let folder = try ScratchFolder()
    let models = try #require(Corpus.folder).appendingPathComponent("models")
    let family = models.appendingPathComponent(
      "wibosco__CoreDataMigrationRevised-Example__CoreDataMigration_Example.xcdatamodeld"
    )
    func version(_ name: String) throws -> NSManagedObjectModel {
      try ModelFile.load(
        contentsOf: family.appendingPathComponent("CoreDataMigration_Example\(name).xcdatamodel")
      )
    }
    let name = "wibosco__CoreDataMigrationRevised-Example__Migration2to3ModelMapping.xcmappingmodel"
    try FileManager.default.copyItem(
      at: models.appendingPathComponent("_mapping/\(name)"),
      to: folder.file("Migration2to3.xcmappingmodel")
    )
    let bundle = try #require(Bundle(path: folder.url.path))
    let found = NSMappingModel(
      from: [bundle],
      forSourceModel: try version(" 2"),
      destinationModel: try version(" 3")
    )
    #expect(found?.entityMappings.map(\.destinationEntityName) == ["Section", "Post"])
    #expect(
      NSMappingModel(
        from: [bundle],
        forSourceModel: try version(" 3"),
        destinationModel: try version(" 4")
      ) == nil
    )
  }

  @Test("A mapping model is found after its destination was renamed, if it names all properties")
  func renamedDestination() throws {
    let folder = try ScratchFolder()
    let models = try #require(Corpus.folder).appendingPathComponent("models")
    let name = "carekit-apple__CareKit__2.0_2.1_Mapping.xcmappingmodel"
    try FileManager.default.copyItem(
      at: models.appendingPathComponent("_mapping/\(name)"),
      to: folder.file("Mapping.xcmappingmodel")
    )
    let bundle = try #require(Bundle(path: folder.url.path))
    let family = models.appendingPathComponent(
      "carekit-apple__CareKit__CareKitStore.xcdatamodeld"
    )
    func version(_ name: String) throws -> NSManagedObjectModel {
      try ModelFile.load(contentsOf: family.appendingPathComponent("\(name).xcdatamodel"))
    }
    let source = try version("CareKitStore2.0")
    let destination = try version("CareKitStore2.1")
    // The file says CareKitStore2.2, a version that the package does not have.
    let found = NSMappingModel(
      from: [bundle],
      forSourceModel: source,
      destinationModel: destination
    )
    #expect(found?.entityMappings.count == destination.entities.count)
    #expect(
      NSMappingModel(from: [bundle], forSourceModel: destination, destinationModel: source) == nil
    )
    let other = try version("CareKitStore2.1")
    let attribute = NSAttributeDescription()
    attribute.name = "later"
    attribute.attributeType = .stringAttributeType
    try #require(other.entitiesByName["OCKCDNote"]).properties.append(attribute)
    #expect(
      NSMappingModel(from: [bundle], forSourceModel: source, destinationModel: other) == nil
    )
  }

  @Test("The build plugin's form of a mapping model says the same")
  func compiling() throws {
    let folder = try ScratchFolder()
    let mapping = try #require(Corpus.folder).appendingPathComponent(
      "models/_mapping/alemar11__CoreDataPlus__V2toV3.xcmappingmodel"
    )
    let file = folder.file("V2toV3.cdm")
    try MappingCompiler.compile(mapping, into: file)
    let compiled = try #require(NSMappingModel(contentsOf: file))
    #expect(!compiled.entityMappings.isEmpty)
    #expect(compiled == NSMappingModel(contentsOf: mapping))
    try FileManager.default.createDirectory(
      at: folder.file("bad.xcmappingmodel"),
      withIntermediateDirectories: true
    )
    try Data("<model/>".utf8).write(to: folder.file("bad.xcmappingmodel/xcmapping.xml"))
    #expect(throws: (any Error).self) {
      try MappingCompiler.compile(folder.file("bad.xcmappingmodel"), into: file)
    }
    #expect(NSMappingModel(contentsOf: file) == compiled)
  }

  @Test("A damaged file gives nil")
  func damaged() throws {
    let folder = try ScratchFolder()
    let file = folder.file("bad.cdm")
    #expect(NSMappingModel(contentsOf: file) == nil)
    #expect(NSMappingModel(contentsOf: nil) == nil)
    for text in ["", "bplist00", "<database>", "<model/>"] {
      try Data(text.utf8).write(to: file)
      #expect(NSMappingModel(contentsOf: file) == nil)
    }
  }
}
