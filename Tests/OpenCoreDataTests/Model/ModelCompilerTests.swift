import Foundation
import OpenCoreData
import Testing

@Suite("Compiling models")
struct ModelCompilerTests {
  @Test("The version info has each version's checksum and entity hashes")
  func versionInfo() throws {
    let folder = try ScratchFolder()
    let package = folder.file("Model.xcdatamodeld")
    for version in ["One", "Two & more"] {
      let place = package.appendingPathComponent("\(version).xcdatamodel")
      try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
      try Data(
        "<model><entity name=\"Note\" versionHashModifier=\"\(version.count)\"/></model>".utf8
      )
      .write(to: place.appendingPathComponent("contents"))
    }
    let compiled = folder.file("Model.momd")
    try ModelCompiler.compile(package, into: compiled)
    let list = try PropertyListSerialization.propertyList(
      from: Data(contentsOf: compiled.appendingPathComponent("VersionInfo.plist")),
      format: nil
    )
    let info = try #require(list as? [String: Any])
    let versions = try ModelFile.versions(of: compiled)
    #expect(versions.map(\.name) == ["One", "Two & more"])
    let checksums = info["NSManagedObjectModel_VersionChecksums"] as? [String: String]
    let hashes = info["NSManagedObjectModel_VersionHashes"] as? [String: [String: Data]]
    for (name, model) in versions {
      #expect(checksums?[name] == model.versionChecksum)
      #expect(hashes?[name] == model.entityVersionHashesByName)
    }
  }

  @Test("What has no user info has an empty one, as in code, in both forms of a model file")
  func emptyUserInfo() throws {
    let folder = try ScratchFolder()
    let package = folder.file("Model.xcdatamodeld")
    let place = package.appendingPathComponent("Model.xcdatamodel")
    try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
    try Data(
      """
      <model><entity name="Note">
      <attribute name="text" optional="YES" attributeType="String"/>
      <attribute name="marked" optional="YES" attributeType="String">
      <userInfo><entry key="a" value="b"/></userInfo></attribute>
      </entity></model>
      """.utf8
    )
    .write(to: place.appendingPathComponent("contents"))
    let compiled = folder.file("Model.momd")
    try ModelCompiler.compile(package, into: compiled)
    for file in [package, compiled] {
      let note = try #require(try ModelFile.load(contentsOf: file).entitiesByName["Note"])
      #expect(note.userInfo?.isEmpty == true)
      #expect(note.propertiesByName["text"]?.userInfo?.isEmpty == true)
      #expect(note.propertiesByName["marked"]?.userInfo?["a"] as? String == "b")
    }
  }
}
