import Foundation
import OpenCoreData
import Testing

/// A bundle with the package `Model.xcdatamodeld`, whose version `ModelV2` is the current one.
@Suite("References to model versions")
struct ModelReferenceTests {
  let folder: ScratchFolder
  let package: URL
  let bundle: Bundle

  init() throws {
    folder = try ScratchFolder()
    package = folder.file("Model.xcdatamodeld")
    for (version, attribute) in [("Model", "name"), ("ModelV2", "title")] {
      let place = package.appendingPathComponent("\(version).xcdatamodel")
      try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
      try Data(
        """
        <model>
          <entity name="Note">
            <attribute name="\(attribute)" optional="YES" attributeType="String"/>
          </entity>
        </model>
        """.utf8
      )
      .write(to: place.appendingPathComponent("contents"))
    }
    try Data(
      """
      <plist version="1.0">
      <dict><key>_XCCurrentVersionName</key><string>ModelV2.xcdatamodel</string></dict>
      </plist>
      """.utf8
    )
    .write(to: package.appendingPathComponent(".xccurrentversion"))
    bundle = try #require(Bundle(path: folder.url.path))
  }

  private func checksum(_ version: String) throws -> String {
    try ModelFile.load(contentsOf: package.appendingPathComponent("\(version).xcdatamodel"))
      .versionChecksum
  }

  private func attributes(_ reference: NSManagedObjectModelReference) -> Set<String>? {
    reference.resolvedModel.entitiesByName["Note"].map { Set($0.attributesByName.keys) }
  }

  @Test(
    "A name of a model or of a version, in its bundle or not, finds the version with the checksum",
    arguments: ["Model", "ModelV2", "Other"]
  )
  func names(_ name: String) throws {
    let first = NSManagedObjectModelReference(
      name: name,
      in: bundle,
      versionChecksum: try checksum("Model")
    )
    #expect(attributes(first) == ["name"])
    let second = NSManagedObjectModelReference(
      name: name,
      in: bundle,
      versionChecksum: try checksum("ModelV2")
    )
    #expect(attributes(second) == ["title"])
  }

  @Test("A file with versions has the version with the checksum")
  func files() throws {
    let compiled = folder.file("Compiled.momd")
    try ModelCompiler.compile(package, into: compiled)
    for file in [package, compiled, compiled.appendingPathComponent("Model.mom")] {
      let reference = NSManagedObjectModelReference(
        fileURL: file,
        versionChecksum: try checksum("Model")
      )
      #expect(attributes(reference) == ["name"])
    }
  }

  @Test("The hashes of its entities find a version")
  func hashes() throws {
    let model = try ModelFile.load(
      contentsOf: package.appendingPathComponent("Model.xcdatamodel")
    )
    let reference = NSManagedObjectModelReference(
      entityVersionHashes: model.entityVersionHashesByName,
      in: bundle,
      versionChecksum: model.versionChecksum
    )
    #expect(attributes(reference) == ["name"])
  }

  @Test("A version that is nowhere fails the migration that needs it, and no other")
  func missing() throws {
    let (first, last) = (try checksum("Model"), try checksum("ModelV2"))
    func options(_ references: NSManagedObjectModelReference...) -> [AnyHashable: Any] {
      let stage = NSCustomMigrationStage(migratingFrom: references[0], to: references[1])
      stage.willMigrateHandler = { _, _ in }
      return MigrationBench.lightweight.merging([
        NSPersistentStoreStagedMigrationManagerOptionKey: NSStagedMigrationManager([stage])
      ]) { $1 }
    }
    let unknown = NSManagedObjectModelReference(
      fileURL: folder.file("Absent.momd"),
      versionChecksum: first
    )
    let known = NSManagedObjectModelReference(name: "Model", in: bundle, versionChecksum: last)
    let bench = try MigrationBench()
    let older = try ModelFile.load(contentsOf: package.appendingPathComponent("Model.xcdatamodel"))
    let newer = try ModelFile.load(contentsOf: package)
    try bench.open(older) { _ = $0.insert("Note", ["name": "Ada"]) }
    let untouched = try bench.dump()
    let error = bench.refusal(newer, options(unknown, known))
    #expect(error?.code == NSManagedObjectModelReferenceNotFoundError)
    #expect(error?.localizedDescription.contains(first) == true)
    #expect(try bench.dump() == untouched)
    let other = try MigrationBench()
    try other.open(newer, options(unknown, known)) { _ = $0.insert("Note", ["title": "Ada"]) }
  }
}
