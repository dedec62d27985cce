import ModelGenerator
import Testing

/// What adoption says of a package's manifest.
@Suite("Adopting a manifest")
struct PackageManifestTests {
  private func manifest(_ text: String) -> PackageManifest {
    PackageManifest(SourceFile(path: "Package.swift", text: text))
  }

  private static let plain = """
    let package = Package(
      name: "app",
      dependencies: [],
      targets: [
        .target(name: "Store", resources: [.process("Model.xcdatamodeld")]),
        .target(name: "Other", dependencies: ["Store"], path: "Else"),
        .testTarget(name: "StoreTests", dependencies: ["Store"]),
      ]
    )
    """

  @Test("Targets are found with their folders")
  func targets() {
    #expect(
      manifest(Self.plain).targets.map { "\($0.name) \($0.folder) \($0.line)" }
        == ["Store Sources/Store 5", "Other Else 6", "StoreTests Tests/StoreTests 7"]
    )
  }

  @Test("A target's note names the product, the plugin and the package that it needs")
  func needs() {
    let notes = manifest(Self.plain).notes([
      "Store": .init(coreData: true, cloudKit: true, models: true),
      "Other": .init(coreData: false, cloudKit: false, models: false),
      "StoreTests": .init(coreData: true, cloudKit: false, models: false, shims: true),
    ])
    #expect(notes.map(\.line) == [5, 5, 5, 7, 7, 3])
    #expect(notes.map(\.isByHand) == notes.map { _ in true })
    #expect(notes[0].text.contains(#".product(name: "CoreData", package: "watershed""#))
    #expect(notes[1].text.contains(#"name: "CloudKit""#))
    #expect(notes[2].text.contains("CoreDataModels"))
    #expect(notes[4].text.contains(#".product(name: "AppleShims", package: "watershed""#))
  }

  @Test("A target without classes needs the plugin for names that Foundation declares too")
  func ambiguousNames() {
    func isAmbiguous(_ text: String) -> Bool {
      var use = FrameworkUse()
      use.add(text)
      return use.ambiguousNames
    }
    let imports = "import CoreData\nimport Foundation\n"
    #expect(isAmbiguous(imports + "let a: NSExpression"))
    #expect(!isAmbiguous(imports + "let a: NSExpressionDescription"))
    #expect(!isAmbiguous("import CoreData\nlet a: NSExpression"))
    let notes = manifest(Self.plain).notes([
      "Store": .init(coreData: true, cloudKit: false, models: false, ambiguousNames: true)
    ])
    #expect(notes.map(\.line) == [5, 5, 3])
    #expect(notes[1].text.contains("resolves the names that Foundation and CoreData both declare"))
  }

  @Test("Imports and classes in strings and comments need nothing")
  func strings() {
    let quotes = "\"\"\""
    var use = FrameworkUse()
    use.add("let a = \(quotes)\nimport CoreData\n@NSManaged var b: Int\n\(quotes)\n")
    use.add("// import CloudKit")
    #expect(use == FrameworkUse())
    use.add("#if os(Linux)\n@preconcurrency import CoreData\n#endif")
    use.add("class A { @NSManaged var b: Int }")
    #expect(use == FrameworkUse(coreData: true, models: true))
  }

  @Test("A file that a target excludes or copies is not compiled")
  func uncompiled() {
    let manifest = manifest(
      """
      let package = Package(
        name: "app",
        targets: [
          .macro(name: "Macros", exclude: ["Old.swift"]),
          .testTarget(
            name: "MacroTests",
            resources: [.copy("Samples"), .process("Models")],
            exclude: ["__Snapshots__", "Fixtures"]
          ),
        ]
      )
      """
    )
    #expect(
      manifest.uncompiled == [
        "Sources/Macros/Old.swift", "Tests/MacroTests/__Snapshots__", "Tests/MacroTests/Fixtures",
        "Tests/MacroTests/Samples",
      ]
    )
  }

  @Test("A package that has all it needs gets no note")
  func complete() {
    let notes = manifest(
      """
      let package = Package(
        name: "app",
        dependencies: [.package(url: "https://example.org/watershed", from: "1.0.0")],
        targets: [
          .target(
            name: "Store",
            dependencies: [.product(name: "CoreData", package: "watershed")],
            plugins: [.plugin(name: "CoreDataModels", package: "watershed")]
          )
        ]
      )
      """
    ).notes(["Store": .init(coreData: true, cloudKit: false, models: true)])
    #expect(notes.isEmpty, "\(notes)")
  }
}
