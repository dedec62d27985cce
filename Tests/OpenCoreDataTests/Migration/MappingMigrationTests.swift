import Foundation
import OpenCoreData
import Testing
import WatershedSQLite

/// Joins two names, like an app's own policy.
final class FullNamePolicy: NSEntityMigrationPolicy {
  override func perform(_ name: String, arguments: [Any?]) throws -> Any? {
    guard name == "fullName:", let person = arguments.first as? NSManagedObject else {
      return try super.perform(name, arguments: arguments)
    }
    let names = ["first", "last"].compactMap { person.value(forKey: $0) as? String }
    return names.joined(separator: " ")
  }
}

/// Records its calls.
final class RecordingPolicy: NSEntityMigrationPolicy {
  private func note(_ call: String, _ manager: NSMigrationManager) {
    var calls = manager.userInfo?["calls"] as? [String] ?? []
    calls.append("\(call) \(manager.currentEntityMapping.name ?? "")")
    manager.userInfo = ["calls": calls]
  }

  override func begin(_ mapping: NSEntityMapping, with manager: NSMigrationManager) throws {
    note("begin", manager)
  }

  override func createDestinationInstances(
    forSource sInstance: NSManagedObject,
    in mapping: NSEntityMapping,
    manager: NSMigrationManager
  ) throws {
    note("create", manager)
    try super.createDestinationInstances(forSource: sInstance, in: mapping, manager: manager)
  }

  override func endInstanceCreation(
    forMapping mapping: NSEntityMapping,
    manager: NSMigrationManager
  ) throws {
    note("created", manager)
  }

  override func createRelationships(
    forDestination dInstance: NSManagedObject,
    in mapping: NSEntityMapping,
    manager: NSMigrationManager
  ) throws {
    note("relate", manager)
    try super.createRelationships(forDestination: dInstance, in: mapping, manager: manager)
  }

  override func endRelationshipCreation(
    forMapping mapping: NSEntityMapping,
    manager: NSMigrationManager
  ) throws {
    note("related", manager)
  }

  override func performCustomValidation(
    forMapping mapping: NSEntityMapping,
    manager: NSMigrationManager
  ) throws {
    note("validate", manager)
  }

  override func end(_ mapping: NSEntityMapping, manager: NSMigrationManager) throws {
    note("end", manager)
  }
}

/// Splits one object into two, and can be set to fail or to cancel.
final class SplittingPolicy: NSEntityMigrationPolicy {
  struct Trouble: Error {}

  override func createDestinationInstances(
    forSource sInstance: NSManagedObject,
    in mapping: NSEntityMapping,
    manager: NSMigrationManager
  ) throws {
    if manager.userInfo?["fail"] != nil { throw Trouble() }
    if manager.userInfo?["cancel"] != nil { manager.cancelMigrationWithError(Trouble()) }
    for half in ["1", "2"] {
      let made = NSEntityDescription.insertNewObject(
        forEntityName: mapping.destinationEntityName ?? "",
        into: manager.destinationContext
      )
      made.setValue("\(sInstance.value(forKey: "first") ?? "")\(half)", forKey: "name")
      manager.associate(sourceInstance: sInstance, withDestinationInstance: made, for: mapping)
    }
  }
}

@Suite("Migration by mapping models")
struct MappingMigrationTests {
  private typealias Parts = ModelParts

  private static func source() -> NSManagedObjectModel {
    let person = Parts.entity(
      "Person",
      [
        Parts.attribute("first", .stringAttributeType),
        Parts.attribute("last", .stringAttributeType),
        Parts.attribute("age", .stringAttributeType),
      ]
    )
    let company = Parts.entity("Company", [Parts.attribute("name", .stringAttributeType)])
    Parts.relate(company, "people", toMany: true, ordered: true, person, "company")
    return MigrationBench.model(person, company)
  }

  private static func destination() -> NSManagedObjectModel {
    let person = Parts.entity(
      "Human",
      [
        Parts.attribute("name", .stringAttributeType),
        Parts.attribute("age", .integer32AttributeType),
      ]
    )
    let company = Parts.entity("Firm", [Parts.attribute("name", .stringAttributeType)])
    Parts.relate(company, "staff", toMany: true, ordered: true, person, "firm")
    return MigrationBench.model(person, company)
  }

  private static func mapping(policy: AnyClass? = FullNamePolicy.self) -> NSMappingModel {
    let people = NSEntityMapping()
    people.name = "PersonToHuman"
    people.mappingType = .customEntityMappingType
    people.sourceEntityName = "Person"
    people.destinationEntityName = "Human"
    people.entityMigrationPolicyClassName = policy.map { NSStringFromClass($0) }
    people.attributeMappings = [
      MigrationBench.property("age", "CAST($source.age, 'NSNumber')")
    ]
    if policy == FullNamePolicy.self {
      people.attributeMappings?.append(
        MigrationBench.property("name", "FUNCTION($entityPolicy, 'fullName:', $source)")
      )
    }
    let companies = NSEntityMapping()
    companies.name = "CompanyToFirm"
    companies.mappingType = .transformEntityMappingType
    companies.sourceEntityName = "Company"
    companies.destinationEntityName = "Firm"
    companies.attributeMappings = [MigrationBench.property("name", "$source.name")]
    companies.relationshipMappings = [
      MigrationBench.property(
        "staff",
        "FUNCTION($manager, 'destinationInstancesForEntityMappingNamed:sourceInstances:', "
          + "'PersonToHuman', $source.people)"
      )
    ]
    let model = NSMappingModel()
    model.entityMappings = [people, companies]
    return model
  }

  private func filled() throws -> MigrationBench {
    let bench = try MigrationBench("Old.sqlite")
    try bench.open(Self.source()) { context in
      let people = [("Ada", "Lovelace", "36"), ("Alan", "Turing", "41")].map {
        context.insert("Person", ["first": $0.0, "last": $0.1, "age": $0.2])
      }
      _ = context.insert(
        "Company",
        ["name": "Engines", "people": NSOrderedSet(array: people.reversed())]
      )
    }
    return bench
  }

  @Test("A source value that cannot be read fails the migration, and no value replaces it")
  func unreadableValue() throws {
    let photo = ModelParts.attribute("photo", .binaryDataAttributeType) {
      $0.allowsExternalBinaryDataStorage = true
    }
    let model = MigrationBench.model(ModelParts.entity("Person", [photo]))
    let bench = try MigrationBench("People.sqlite")
    try bench.open(model) { context in
      _ = context.insert("Person", ["photo": Data(repeating: 9, count: 150_000)])
    }
    // A folder at the file's path exists, but cannot be read as a value.
    let values = bench.folder.file(".People_SUPPORT/_EXTERNAL_DATA")
    for name in try FileManager.default.contentsOfDirectory(atPath: values.path) {
      let file = values.appendingPathComponent(name)
      try FileManager.default.removeItem(at: file)
      try FileManager.default.createDirectory(at: file, withIntermediateDirectories: true)
    }
    let manager = NSMigrationManager(sourceModel: model, destinationModel: model)
    manager.usesStoreSpecificMigrationManager = false
    let target = bench.folder.file("new.sqlite")
    #expect(throws: CocoaError.self) {
      try manager.migrateStore(
        from: bench.url,
        type: .sqlite,
        mapping: .inferredMappingModel(forSourceModel: model, destinationModel: model),
        to: target,
        type: .sqlite
      )
    }
    #expect(!FileManager.default.fileExists(atPath: target.path))
  }

  @Test("Value expressions set values, policy functions and relationships")
  func expressions() throws {
    let bench = try filled()
    let target = bench.folder.file("New.sqlite")
    let manager = NSMigrationManager(
      sourceModel: Self.source(),
      destinationModel: Self.destination()
    )
    try manager.migrateStore(
      from: bench.url,
      type: .sqlite,
      mapping: Self.mapping(),
      to: target,
      type: .sqlite
    )
    #expect(manager.migrationProgress == 1)
    try bench.open(Self.destination(), [:], at: target) { context in
      let firm = try #require(try context.all("Firm").first)
      #expect(firm.value(forKey: "name") as? String == "Engines")
      let staff = (firm.value(forKey: "staff") as? NSOrderedSet)?.array as? [NSManagedObject]
      #expect(
        staff?.map { $0.value(forKey: "name") as? String } == ["Alan Turing", "Ada Lovelace"]
      )
      #expect(staff?.map { ($0.value(forKey: "age") as? NSNumber)?.intValue } == [41, 36])
    }
    try bench.open(Self.source(), [:]) { try #expect($0.all("Person").count == 2) }
  }

  @Test("A policy is called in three rounds over all mappings")
  func rounds() throws {
    let bench = try filled()
    let mapping = Self.mapping(policy: RecordingPolicy.self)
    for entity in mapping.entityMappings {
      entity.entityMigrationPolicyClassName = NSStringFromClass(RecordingPolicy.self)
    }
    let manager = NSMigrationManager(
      sourceModel: Self.source(),
      destinationModel: Self.destination()
    )
    try manager.migrateStore(
      from: bench.url,
      sourceType: NSSQLiteStoreType,
      options: nil,
      with: mapping,
      toDestinationURL: bench.folder.file("New.sqlite"),
      destinationType: NSSQLiteStoreType,
      destinationOptions: nil
    )
    #expect(
      manager.userInfo?["calls"] as? [String] == [
        "begin PersonToHuman", "create PersonToHuman", "create PersonToHuman",
        "created PersonToHuman",
        "begin CompanyToFirm", "create CompanyToFirm", "created CompanyToFirm",
        "relate PersonToHuman", "relate PersonToHuman", "related PersonToHuman",
        "relate CompanyToFirm", "related CompanyToFirm",
        "validate PersonToHuman", "end PersonToHuman",
        "validate CompanyToFirm", "end CompanyToFirm",
      ]
    )
  }

  @Test("A policy can create several objects of one, and relationships find all of them")
  func splitting() throws {
    let bench = try filled()
    let target = bench.folder.file("New.sqlite")
    let manager = NSMigrationManager(
      sourceModel: Self.source(),
      destinationModel: Self.destination()
    )
    try manager.migrateStore(
      from: bench.url,
      type: .sqlite,
      mapping: Self.mapping(policy: SplittingPolicy.self),
      to: target,
      type: .sqlite
    )
    try bench.open(Self.destination(), [:], at: target) { context in
      let firm = try #require(try context.all("Firm").first)
      #expect((firm.value(forKey: "staff") as? NSOrderedSet)?.count == 4)
    }
  }

  @Test("An error of a policy fails the migration; the source is unchanged and nothing is left")
  func policyError() throws {
    let bench = try filled()
    let target = bench.folder.file("New.sqlite")
    let manager = NSMigrationManager(
      sourceModel: Self.source(),
      destinationModel: Self.destination()
    )
    func migrate() throws {
      try manager.migrateStore(
        from: bench.url,
        type: .sqlite,
        mapping: Self.mapping(policy: SplittingPolicy.self),
        to: target,
        type: .sqlite
      )
    }
    manager.userInfo = ["fail": true]
    #expect {
      try migrate()
    } throws: { error in
      let error = error as NSError
      return error.code == NSEntityMigrationPolicyError
        && error.userInfo[NSUnderlyingErrorKey] is SplittingPolicy.Trouble
    }
    #expect(!FileManager.default.fileExists(atPath: target.path))
    manager.reset()
    manager.userInfo = ["cancel": true]
    #expect(throws: SplittingPolicy.Trouble.self) { try migrate() }
    #expect(!FileManager.default.fileExists(atPath: target.path))
    manager.reset()
    manager.userInfo = nil
    try migrate()
    #expect(FileManager.default.fileExists(atPath: target.path))
  }

  @Test(
    "An unreadable source fails with 134150, a destination with 134160, a missing class with 134170"
  )
  func storeErrors() throws {
    let bench = try filled()
    let target = bench.folder.file("New.sqlite")
    func code(from source: URL, to target: URL, _ mapping: NSMappingModel) -> Int? {
      let manager = NSMigrationManager(
        sourceModel: Self.source(),
        destinationModel: Self.destination()
      )
      do {
        try manager.migrateStore(
          from: source,
          type: .sqlite,
          mapping: mapping,
          to: target,
          type: .sqlite
        )
        return nil
      } catch {
        return (error as NSError).code
      }
    }
    let absent = bench.folder.file("absent.sqlite")
    #expect(
      code(from: absent, to: target, Self.mapping()) == NSMigrationManagerSourceStoreError
    )
    let nowhere = bench.folder.file("no/folder/New.sqlite")
    #expect(
      code(from: bench.url, to: nowhere, Self.mapping())
        == NSMigrationManagerDestinationStoreError
    )
    let mapping = Self.mapping()
    mapping.entityMappings[0].entityMigrationPolicyClassName = "NoSuchPolicy"
    #expect(code(from: bench.url, to: target, mapping) == NSEntityMigrationPolicyError)
  }

  @Test("An inferred mapping is executed by SQL, or object by object on request")
  func inferred() throws {
    let bench = try filled()
    let newer = Self.source()
    newer.entities[0].properties.append(
      Parts.attribute("note", .stringAttributeType) { $0.defaultValue = "new" }
    )
    let mapping = try NSMappingModel.inferredMappingModel(
      forSourceModel: Self.source(),
      destinationModel: newer
    )
    for isSpecific in [true, false] {
      let target = bench.folder.file("New\(isSpecific).sqlite")
      let manager = NSMigrationManager(sourceModel: Self.source(), destinationModel: newer)
      #expect(manager.usesStoreSpecificMigrationManager)
      manager.usesStoreSpecificMigrationManager = isSpecific
      try manager.migrateStore(
        from: bench.url,
        type: .sqlite,
        mapping: mapping,
        to: target,
        type: .sqlite
      )
      try bench.open(newer, [:], at: target) { context in
        let people = try context.all("Person", by: "first")
        #expect(people.map { $0.value(forKey: "last") as? String } == ["Lovelace", "Turing"])
        #expect(people.allSatisfy { $0.value(forKey: "note") as? String == "new" })
        let company = try #require(try context.all("Company").first)
        let staff = (company.value(forKey: "people") as? NSOrderedSet)?.array as? [NSManagedObject]
        #expect(staff?.map { $0.value(forKey: "first") as? String } == ["Alan", "Ada"])
      }
    }
  }

  @Test("A source expression selects the objects to migrate")
  func sourceExpression() throws {
    let bench = try filled()
    let target = bench.folder.file("New.sqlite")
    let mapping = Self.mapping()
    mapping.entityMappings[0].sourceExpression = NSExpression(
      format: "FUNCTION($manager, 'fetchRequestForSourceEntityNamed:predicateString:', "
        + "'Person', \"first == 'Ada'\")"
    )
    let manager = NSMigrationManager(
      sourceModel: Self.source(),
      destinationModel: Self.destination()
    )
    try manager.migrateStore(
      from: bench.url,
      type: .sqlite,
      mapping: mapping,
      to: target,
      type: .sqlite
    )
    try bench.open(Self.destination(), [:], at: target) { context in
      try #expect(
        context.all("Human").map { $0.value(forKey: "name") as? String } == ["Ada Lovelace"]
      )
    }
  }

  @Test("Mappings with equal contents are equal")
  func equality() throws {
    func model(_ names: String...) -> NSManagedObjectModel {
      MigrationBench.model(ModelParts.entity("Post", names.map { ModelParts.text($0) }))
    }
    func mapping(_ after: NSManagedObjectModel) throws -> NSMappingModel {
      try NSMappingModel.inferredMappingModel(
        forSourceModel: model("title"),
        destinationModel: after
      )
    }
    let first = try mapping(model("title", "body"))
    let same = try mapping(model("title", "body"))
    let other = try mapping(model("title", "text"))
    #expect(first == same)
    #expect(first.entityMappings == same.entityMappings)
    #expect(first != other)
    let property = NSPropertyMapping()
    property.name = "title"
    let second = NSPropertyMapping()
    second.name = "title"
    #expect(property == second)
    second.valueExpression = NSExpression(forConstantValue: 1)
    #expect(property != second)
  }

  @Test("Objects in a migration are plain ones, regardless of the model's classes")
  func plainObjects() throws {
    func model(_ names: String...) -> NSManagedObjectModel {
      let post = ModelParts.entity("Post", names.map { ModelParts.text($0) })
      post.managedObjectClassName = NSStringFromClass(UnreadyPost.self)
      return MigrationBench.model(post)
    }
    let bench = try MigrationBench()
    try bench.open(model("title", "ready")) { context in
      _ = context.insert("Post", ["title": "a"])
    }
    let (before, after) = (model("title", "ready"), model("title", "other"))
    let manager = NSMigrationManager(sourceModel: before, destinationModel: after)
    manager.usesStoreSpecificMigrationManager = false
    let place = bench.folder.file("migrated.sqlite")
    try manager.migrateStore(
      from: bench.url,
      type: .sqlite,
      mapping: try NSMappingModel.inferredMappingModel(
        forSourceModel: before,
        destinationModel: after
      ),
      to: place,
      type: .sqlite
    )
    try bench.open(after, at: place) { context in
      let titles = try context.all("Post").map { $0.value(forKey: "title") as? String }
      #expect(titles == ["a"])
    }
  }
}

/// On insertion it uses a property that only one version of its entity has.
final class UnreadyPost: NSManagedObject {
  override func awakeFromInsert() {
    super.awakeFromInsert()
    setValue("yes", forKey: "ready")
  }
}
