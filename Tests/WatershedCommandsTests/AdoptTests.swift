import Foundation
import Testing

@Suite("watershed adopt")
struct AdoptTests {
  private func withPackage(_ body: (URL) async throws -> Void) async throws {
    let folder = FileManager.default.temporaryDirectory
      .appendingPathComponent("adopt-\(UUID().uuidString)")
    let sources = folder.appendingPathComponent("Sources/Blog")
    try FileManager.default.createDirectory(at: sources, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    try Data(#"let package = Package(name: "b", targets: [.target(name: "Blog")])\#n"#.utf8)
      .write(to: folder.appendingPathComponent("Package.swift"))
    try Data("import CoreData\n\n@objc(Post)\nclass Post: NSManagedObject {}\n".utf8)
      .write(to: sources.appendingPathComponent("Post.swift"))
    try await body(folder)
  }

  @Test(
    "A dry run prints a diff and changes nothing; a run changes once and lists manifest changes"
  )
  func package() async throws {
    try await withPackage { folder in
      let file = folder.appendingPathComponent("Sources/Blog/Post.swift")
      let source = try String(contentsOf: file, encoding: .utf8)
      let dry = try await Watershed.run("adopt", folder.path, "--dry-run")
      #expect(dry.status == 0)
      #expect(
        dry.output.contains(
          """
          @@ -1,4 +1,6 @@
           import CoreData
           
          +#if canImport(ObjectiveC)
           @objc(Post)
          +#endif
           class Post: NSManagedObject {}

          """
        ),
        "\(dry.output)"
      )
      #expect(dry.output.contains("Would change 1 file."))
      #expect(try String(contentsOf: file, encoding: .utf8) == source)

      let run = try await Watershed.run("adopt", folder.path)
      #expect(run.output.contains("Post.swift:3: @objc(Post) is put inside"), "\(run.output)")
      #expect(run.output.contains(#"Blog needs .product(name: "CoreData", package: "watershed""#))
      #expect(
        try String(contentsOf: file, encoding: .utf8)
          == "import CoreData\n\n#if canImport(ObjectiveC)\n@objc(Post)\n#endif\nclass Post: NSManagedObject {}\n"
      )
      let again = try await Watershed.run("adopt", folder.path)
      #expect(again.output.contains("Nothing to change."), "\(again.output)")
      #expect(again.output.contains("Package.swift:1: Blog needs"))
    }
  }

  @Test("A dry run counts what the edits make necessary, and reads every manifest of the package")
  func dryRun() async throws {
    try await withPackage { folder in
      let file = folder.appendingPathComponent("Sources/Blog/Post.swift")
      try Data("import os\n\nlet model = NSManagedObjectModel()\n".utf8).write(to: file)
      let manifest = folder.appendingPathComponent("Package.swift")
      let other = folder.appendingPathComponent("Package@swift-6.2.swift")
      try FileManager.default.copyItem(at: manifest, to: other)
      // The place of the folder may be written in several ways.
      let dry = try await Watershed.run("adopt", folder.path + "/./", "--dry-run")
      for name in ["Package.swift", "Package@swift-6.2.swift"] {
        for product in ["AppleShims", "CoreData"] {
          let line = #"\#(name):1: Blog needs .product(name: "\#(product)""#
          #expect(dry.output.contains(line), "\(line) in \(dry.output)")
        }
      }
      let count = try #require(dry.output.split(separator: "\n").last)
      let run = try await Watershed.run("adopt", folder.path)
      #expect(run.output.split(separator: "\n").last == count)
    }
  }

  @Test("Files that the manifest excludes keep every byte")
  func excluded() async throws {
    try await withPackage { folder in
      let manifest =
        #"let package = Package(targets: [.target(name: "Blog", exclude: ["Expanded"])])"#
      try Data(manifest.utf8).write(to: folder.appendingPathComponent("Package.swift"))
      let sources = folder.appendingPathComponent("Sources/Blog")
      let expanded = sources.appendingPathComponent("Expanded/Post.swift")
      try FileManager.default.createDirectory(
        at: expanded.deletingLastPathComponent(),
        withIntermediateDirectories: true
      )
      let post = sources.appendingPathComponent("Post.swift")
      try FileManager.default.copyItem(at: post, to: expanded)
      let source = try Data(contentsOf: post)
      let run = try await Watershed.run("adopt", folder.path)
      #expect(run.output.contains("Changed 1 file."), "\(run.output)")
      #expect(try Data(contentsOf: expanded) == source)
      #expect(try Data(contentsOf: post) != source)
    }
  }

  @Test("A missing file is refused with its name")
  func missing() async throws {
    let outcome = try await Watershed.run("adopt", "/nowhere/a.swift")
    #expect(outcome.status != 0)
    #expect((outcome.output + outcome.errors).contains("/nowhere/a.swift"))
  }
}
