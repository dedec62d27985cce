import Effects
import Foundation
import ModelGenerator
import OpenCoreData

/// The executable of the build plugin: reads models and sources, writes one source file and
/// compiled models.
///
///     model-tool --module M --import I --output FILE [--access A]
///       [--model MODEL --compiled FOLDER]… [--mapping MAPPING --compiled-mapping FILE]…
///       [--source FILE]…
@main
enum ModelTool {
  static func main() {
    do {
      try run(Array(CommandLine.arguments.dropFirst()))
    } catch let failure as ModelToolFailure {
      StandardError.print(failure.text)
      exit(1)
    } catch {
      StandardError.print("error: \(error)")
      exit(1)
    }
  }

  private static func run(_ arguments: [String]) throws {
    var options: [String: [String]] = [:]
    var rest = arguments[...]
    while let name = rest.popFirst() {
      guard let value = rest.popFirst() else {
        throw ModelToolFailure(text: "error: \(name) needs a value")
      }
      options[name, default: []].append(value)
    }
    guard let module = options["--module"]?.first, let output = options["--output"]?.first else {
      throw ModelToolFailure(text: "error: --module and --output are needed")
    }
    let models = options["--model"] ?? []
    for (model, folder) in zip(models, options["--compiled"] ?? []) {
      try ModelCompiler.compile(URL(fileURLWithPath: model), into: URL(fileURLWithPath: folder))
    }
    for (mapping, file) in zip(options["--mapping"] ?? [], options["--compiled-mapping"] ?? []) {
      try MappingCompiler.compile(URL(fileURLWithPath: mapping), into: URL(fileURLWithPath: file))
    }
    let generator = ModuleGenerator(
      module: module,
      importedModule: options["--import"]?.first ?? "OpenCoreData",
      classes: ClassWriter(access: options["--access"]?.first ?? "public"),
      models: try models.map { try ModelFile.load(contentsOf: URL(fileURLWithPath: $0)) },
      sources: try (options["--source"] ?? []).map {
        SourceFile(path: $0, text: try String(contentsOfFile: $0, encoding: .utf8))
      }
    )
    let result = generator.generate()
    guard result.errors.isEmpty else {
      throw ModelToolFailure(text: result.errors.map(\.description).joined(separator: "\n"))
    }
    // Most changes of sources leave the output unchanged, so that nothing is compiled again.
    let present = try? String(contentsOfFile: output, encoding: .utf8)
    guard present != result.source else { return }
    try result.source.write(toFile: output, atomically: true, encoding: .utf8)
  }
}

/// Why nothing was generated, in the format of compiler errors.
struct ModelToolFailure: Error {
  var text: String
}
