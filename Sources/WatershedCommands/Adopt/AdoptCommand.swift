import ArgumentParser
import Effects
import Foundation
import ModelGenerator

/// `watershed adopt`: a package or sources for Apple's platforms made to compile on Linux.
struct AdoptCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "adopt",
    abstract: "Make a package or sources for Apple's platforms compile on Linux.",
    discussion: """
      What is safe on both is changed: @objc and imports of frameworks that Linux lacks go inside #if, \
      #keyPath(Post.title) becomes "title", casts of fetch requests become typed requests, a missing \
      import CoreData is added. The rest is listed with file, line and remedy, the package's manifest \
      included. What was adopted is not changed again.
      """
  )

  @Argument(help: "A package's folder, other folders, or Swift files.")
  var paths: [String] = ["."]

  @Flag(help: "Change nothing; print the changes as a diff.")
  var dryRun = false

  func run() throws {
    var changed = 0
    var notes: [SourceAdopter.Note] = []
    var hasUnreadable = false
    var adopted: [String: String] = [:]
    for path in try files() {
      guard let text = text(of: path) else {
        hasUnreadable = true
        continue
      }
      let result = SourceAdopter.adopt(SourceFile(path: path, text: text))
      notes += result.notes
      adopted[Self.key(path)] = result.text
      guard result.text != text else { continue }
      changed += 1
      if dryRun {
        try StandardOutput.write("\(UnifiedDiff(path: path, from: text, to: result.text))")
      } else {
        try attempt("\(path) was not changed") { try OutputFile.write(result.text, to: path) }
      }
    }
    for path in paths { notes += try manifestNotes(path, adopted) }
    if !dryRun {
      for note in notes where !note.isByHand { try StandardOutput.print("\(note)") }
    }
    for note in notes where note.isByHand { try StandardOutput.print("\(note) (by hand)") }
    let byHand = notes.count(where: \.isByHand)
    let files = changed == 1 ? "1 file" : "\(changed) files"
    try StandardOutput.print(
      changed == 0 ? "Nothing to change." : "\(dryRun ? "Would change" : "Changed") \(files)."
    )
    if byHand > 0 { try StandardOutput.print("\(byHand) to be changed by hand.") }
    if hasUnreadable { throw ExitCode.failure }
  }

  /// The text of a source; nil after the report of one that is left as it is, so that one file of another
  /// encoding does not keep the others from being adopted.
  private func text(of path: String) -> String? {
    do {
      guard let text = String(data: try InputFile.data(path), encoding: .utf8) else {
        throw CommandFailure(
          "UNREADABLE_FILE",
          what: "\(path) was left as it is",
          why: "it is not text in UTF-8",
          next: "convert it: iconv -t UTF-8"
        )
      }
      return text
    } catch {
      StandardError.write(CommandFailure(error, doing: "\(path) was left as it is").text)
      return nil
    }
  }

  // MARK: Files

  private func files() throws -> [String] {
    var files: Set<String> = []
    for path in paths {
      var isFolder: ObjCBool = false
      guard FileManager.default.fileExists(atPath: path, isDirectory: &isFolder) else {
        throw ValidationError("\(path): there is no such file.")
      }
      if isFolder.boolValue {
        files.formUnion(try sources(in: path))
      } else {
        files.insert(path)
      }
    }
    return files.sorted()
  }

  /// The Swift files of a folder but manifests, which are changed by hand, what was built or fetched, and
  /// what `uncompiled` names: a test may compare such files byte by byte.
  private func sources(in folder: String, uncompiled: [String] = []) throws -> [String] {
    let uncompiled = try uncompiled + manifests(of: folder).flatMap(\.uncompiled)
    return try FileManager.default.subpathsOfDirectory(atPath: folder).filter { name in
      let parts = name.split(separator: "/")
      return name.hasSuffix(".swift")
        && !(parts.count == 1 && Self.isManifest(name))
        && !parts.dropLast().contains { $0.hasPrefix(".") || $0 == "Pods" || $0 == "Carthage" }
        && !uncompiled.contains { name == $0 || name.hasPrefix($0 + "/") }
    }
    .map { Self.path($0, in: folder) }
  }

  /// A path by which a file is found again, however its folder was written.
  private static func key(_ path: String) -> String {
    URL(fileURLWithPath: path).standardizedFileURL.path
  }

  private static func path(_ name: String, in folder: String) -> String {
    folder.hasSuffix("/") ? folder + name : folder + "/" + name
  }

  // MARK: The manifest

  /// Whether a file of a package's folder is a manifest: of all toolchains, or as
  /// `Package@swift-6.2.swift` of one.
  private static func isManifest(_ name: String) -> Bool {
    name == "Package.swift" || name.wholeMatch(of: /Package@swift-[0-9.]+\.swift/) != nil
  }

  /// The manifests of a package's folder, of which SwiftPM takes that of its version; none where another folder
  /// was given.
  private func manifests(of folder: String) throws -> [PackageManifest] {
    guard FileManager.default.fileExists(atPath: Self.path("Package.swift", in: folder)) else {
      return []
    }
    return try FileManager.default.contentsOfDirectory(atPath: folder).filter(Self.isManifest)
      .sorted().map { name in
        let path = Self.path(name, in: folder)
        let text = try String(contentsOfFile: path, encoding: .utf8)
        return PackageManifest(SourceFile(path: path, text: text))
      }
  }

  private func manifestNotes(
    _ folder: String,
    _ adopted: [String: String]
  ) throws -> [SourceAdopter.Note] {
    try manifests(of: folder).flatMap { manifest in
      var uses: [String: FrameworkUse] = [:]
      for target in manifest.targets {
        uses[target.name] = try use(by: target, of: folder, adopted)
      }
      return manifest.notes(uses)
    }
  }

  /// What a target uses when it is adopted, which in a dry run its files are not.
  private func use(
    by target: PackageManifest.Target,
    of package: String,
    _ adopted: [String: String]
  ) throws -> FrameworkUse? {
    let folder = Self.path(target.folder, in: package)
    guard FileManager.default.fileExists(atPath: folder) else { return nil }
    var use = FrameworkUse()
    for name in try FileManager.default.subpathsOfDirectory(atPath: folder)
    where name.hasSuffix(".xcdatamodeld") || name.hasSuffix(".xcdatamodel") {
      use.models = true
    }
    for path in try sources(in: folder, uncompiled: target.uncompiled) {
      // A file that cannot be read has been reported.
      if let text = adopted[Self.key(path)] ?? (try? String(contentsOfFile: path, encoding: .utf8))
      {
        use.add(text)
      }
    }
    return use
  }
}
