import Foundation
import OpenCoreData
import Testing
import WatershedSQLite

@Suite("Models of the corpus", .enabled(if: ModelCorpus.isPresent, ModelCorpus.missing))
struct ModelCorpusTests {
  @Test("Every package is loaded with all its versions or refused by name")
  func everyPackageLoads() throws {
    let packages = try ModelCorpus.modelPackages()
    #expect(packages.count > 70)
    var versions = 0
    var refused = 0
    for package in packages {
      do {
        let model = try ModelFile.load(contentsOf: package)
        let all = try ModelFile.versions(of: package)
        versions += all.count
        #expect(
          all.contains { $0.model.entityVersionHashesByName == model.entityVersionHashesByName }
        )
        model.freeze()
        for (_, version) in all {
          version.freeze()
          for entity in version.entities {
            #expect(
              entity.layout.rowWidth == entity.layout.attributes.count + entity.layout.toOnes.count
            )
          }
        }
      } catch let error as ModelFileError {
        // One package consists of its marker alone.
        let isEmpty = package.lastPathComponent == "CocoaPods__Xcodeproj__MyDocument.xcdatamodeld"
        #expect(error.reason == (isEmpty ? .malformed : .unsupported), "\(error)")
        #expect("\(error)".contains(isEmpty ? "no version" : "before Xcode 4"), "\(error)")
        refused += 1
      }
    }
    #expect(refused == 2)
    #expect(versions == 135, "the XML versions of all packages")
  }

  @Test("The known entity hashes are computed from XML")
  func knownHashes() throws {
    struct Vectors: Decodable {
      struct Vector: Decodable {
        let entity: String
        let hash: String
        let model: String
      }
      let vectors: [Vector]
    }
    let folder = try #require(ModelCorpus.folder)
    let file = folder.appendingPathComponent("stores/version-hashes.json")
    let vectors = try JSONDecoder().decode(Vectors.self, from: Data(contentsOf: file)).vectors
    var checked = 0
    for vector in vectors {
      let source = folder.appendingPathComponent(vector.model)
      guard FileManager.default.fileExists(atPath: source.path) else { continue }
      let model = try ModelFile.load(contentsOf: source)
      let entity = try #require(model.entitiesByName[vector.entity])
      let isDerived = entity.attributesByName.values.contains {
        $0 is NSDerivedAttributeDescription
      }
      if isDerived { continue }
      let hash = entity.versionHash.map { String(format: "%02x", $0) }.joined()
      #expect(hash == vector.hash, "\(vector.model) \(vector.entity)")
      checked += 1
    }
    #expect(checked > 15)
  }

  @Test("The model in every store can be decoded and has the hashes in the store's metadata")
  func modelCaches() throws {
    var decoded = 0
    for store in try ModelCorpus.stores() {
      let (cache, metadata) = try read(store)
      guard let cache else { continue }
      let model = try ModelArchive.model(fromModelCache: cache)
      decoded += 1
      let stored = try #require(
        NSManagedObjectModel.versionHashes(inStoreMetadata: metadata),
        "\(store.lastPathComponent)"
      )
      for entity in model.entities {
        let name = try #require(entity.name)
        let isDerived = entity.attributesByName.values.contains {
          $0 is NSDerivedAttributeDescription
        }
        if isDerived || entity.ancestors.contains(where: hasDerived) { continue }
        #expect(entity.versionHash == stored[name], "\(store.lastPathComponent) \(name)")
      }
      #expect(Set(model.entitiesByName.keys) == Set(stored.keys), "\(store.lastPathComponent)")
      if let digest = metadata["NSStoreModelVersionHashesDigest"] as? String {
        #expect(NSManagedObjectModel.metadataDigest(of: stored) == digest)
      }
      if let checksum = metadata["NSStoreModelVersionChecksumKey"] as? String {
        #expect(NSManagedObjectModel.metadataChecksum(of: stored) == checksum)
      }
      try expectRoundTrip(model, store.lastPathComponent)
      model.freeze()
    }
    #expect(decoded == 17)
  }

  @Test("Compiled models can be loaded, and their version info agrees")
  func compiledModels() throws {
    for folder in try ModelCorpus.contents("moms") where folder.pathExtension == "momd" {
      let info = try PropertyListSerialization.propertyList(
        from: Data(contentsOf: folder.appendingPathComponent("VersionInfo.plist")),
        format: nil
      )
      let plist = try #require(info as? [String: Any])
      let hashes = try #require(
        plist["NSManagedObjectModel_VersionHashes"] as? [String: [String: Data]]
      )
      _ = try ModelFile.load(contentsOf: folder)
      for (name, model) in try ModelFile.versions(of: folder) {
        let expected = try #require(hashes[name])
        for entity in model.entities where !hasDerived(entity) {
          #expect(entity.versionHash == expected[entity.name ?? ""], "\(name) \(entity.name ?? "")")
        }
        try expectRoundTrip(model, name)
      }
    }
  }

  @Test("Every model of the corpus can be archived and read again")
  func archives() throws {
    for source in try ModelCorpus.modelSources() {
      try expectRoundTrip(try ModelFile.load(contentsOf: source), source.path)
    }
  }

  @Test("Every model of the corpus can be copied and merged")
  func copies() throws {
    for source in try ModelCorpus.modelSources() {
      let model = try ModelFile.load(contentsOf: source)
      let copy = try #require(model.copy() as? NSManagedObjectModel)
      #expect(copy.entityVersionHashesByName == model.entityVersionHashesByName)
      #expect(ModelText.describe(copy) == ModelText.describe(model))
      let merged = try #require(NSManagedObjectModel(byMerging: [model, copy]))
      #expect(merged.entityVersionHashesByName == model.entityVersionHashesByName)
      let metadata = ["NSStoreModelVersionHashes": model.entityVersionHashesByName]
      #expect(model.isConfiguration(withName: nil, compatibleWithStoreMetadata: metadata))
      #expect(NSManagedObjectModel(byMerging: [copy], forStoreMetadata: metadata) != nil)
    }
  }

  private func hasDerived(_ entity: NSEntityDescription) -> Bool {
    entity.attributesByName.values.contains { $0 is NSDerivedAttributeDescription }
  }

  private func expectRoundTrip(_ model: NSManagedObjectModel, _ name: String) throws {
    let again = try ModelArchive.model(fromModelCache: ModelArchive.modelCache(for: model))
    #expect(again.entityVersionHashesByName == model.entityVersionHashesByName, "\(name)")
    #expect(ModelText.describe(again) == ModelText.describe(model), "\(name)")
  }

  /// Reads a copy, because opening a store in WAL mode creates files beside it.
  private func read(_ store: URL) throws -> (cache: Data?, metadata: [String: Any]) {
    let files = FileManager.default
    let folder = files.temporaryDirectory.appendingPathComponent("model-\(UUID().uuidString)")
    try files.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? files.removeItem(at: folder) }
    let copy = folder.appendingPathComponent("store.sqlite")
    try Data(contentsOf: store).write(to: copy)
    let log = URL(fileURLWithPath: store.path + "-wal")
    if files.fileExists(atPath: log.path) {
      try Data(contentsOf: log).write(to: URL(fileURLWithPath: copy.path + "-wal"))
    }
    let connection = try SQLiteConnection(path: copy.path, mode: .readWrite)
    let tables = try connection.query(
      "SELECT name FROM sqlite_master WHERE name = 'Z_MODELCACHE'"
    ) { $0.text(0) }
    let plists = try connection.query("SELECT Z_PLIST FROM Z_METADATA") { $0.blob(0) }
    let plist = try PropertyListSerialization.propertyList(
      from: try #require(plists.first),
      format: nil
    )
    let metadata = try #require(plist as? [String: Any])
    guard !tables.isEmpty else { return (nil, metadata) }
    let caches = try connection.query("SELECT Z_CONTENT FROM Z_MODELCACHE") { $0.blob(0) }
    return (caches.first, metadata)
  }
}
