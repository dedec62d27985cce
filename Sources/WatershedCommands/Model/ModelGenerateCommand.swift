import ArgumentParser
import Effects
import Foundation
import ModelGenerator
import OpenCoreData

/// `watershed model generate`: writes the classes of a model into the source tree.
struct ModelGenerateCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "generate",
    abstract: "Write the classes of a model into the source tree.",
    discussion: """
      The build plugin CoreDataModels does the same at build time, without files to keep. Files \
      that would not change are not touched; a class file that the model leaves to you is written \
      once.
      """
  )

  @Argument(help: "An .xcdatamodeld, an .xcdatamodel or a compiled model.")
  var model: String

  @Option(name: [.short, .long], help: "The folder for the files.")
  var output: String

  @Option(help: "The module that the files import.")
  var `import` = "OpenCoreData"

  @Option(help: "The access level of the classes: public, package or internal.")
  var access = "public"

  @Flag(help: "Also write the classes of entities whose code is manual.")
  var all = false

  @Flag(help: "Write nothing; exit with 1 when a file is missing or would change.")
  var check = false

  func validate() throws {
    guard ["public", "package", "internal"].contains(access) else {
      throw ValidationError("--access is public, package or internal, not '\(access)'.")
    }
  }

  func run() throws {
    let loaded: NSManagedObjectModel
    do {
      loaded = try ModelFile.load(contentsOf: URL(fileURLWithPath: model))
    } catch {
      let failure = CommandFailure(unreadableModel: error)
      StandardError.write(failure.text)
      throw ExitCode(failure.exitCode)
    }
    let files = ModelClassFiles(importedModule: `import`, classes: ClassWriter(access: access))
      .files(for: loaded, includingManual: all)
    if files.isEmpty {
      try StandardOutput.print("The model has no entity with generated code; --all writes all.")
    }
    let folder = URL(fileURLWithPath: output, isDirectory: true)
    var differences = 0
    for file in files {
      let url = folder.appendingPathComponent(file.name)
      // A file that cannot be read is written, or reported as different.
      let present = try? String(contentsOf: url, encoding: .utf8)
      if present == file.text || present != nil && file.belongsToDeveloper { continue }
      differences += 1
      if check {
        try StandardOutput.print("\(url.path): \(present == nil ? "is missing" : "would change")")
      } else {
        try write(file.text, to: url)
        try StandardOutput.print("\(url.path): \(present == nil ? "written" : "changed")")
      }
    }
    if check, differences > 0 { throw ExitCode(1) }
  }

  private func write(_ text: String, to url: URL) throws {
    do {
      try FileManager.default.createDirectory(
        at: url.deletingLastPathComponent(),
        withIntermediateDirectories: true
      )
      try text.write(to: url, atomically: true, encoding: .utf8)
    } catch {
      let failure = CommandFailure(
        "UNWRITABLE_FILE",
        what: "the classes cannot be written",
        why: "\(url.path): \((error as NSError).localizedDescription)",
        next: "choose a folder that can be written with --output"
      )
      StandardError.write(failure.text)
      throw ExitCode(failure.exitCode)
    }
  }
}
