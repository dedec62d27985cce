import Foundation
import PackagePlugin

/// Writes the classes of a target's models and the accessors of its `@NSManaged` members.
///
/// Each `Name.xcdatamodeld` in the target becomes `Name.momd` in the target's resources, where
/// `NSPersistentContainer(name:)` and `Bundle.module` find it, and each `Name.xcmappingmodel` becomes
/// `Name.cdm` beside it.
@main
struct CoreDataModels: BuildToolPlugin {
  func createBuildCommands(context: PluginContext, target: any Target) throws -> [Command] {
    guard let target = target.sourceModule else { return [] }
    let work = context.pluginWorkDirectoryURL
    let output = work.appending(path: "\(target.moduleName)+CoreDataModels.swift")
    let models = Self.files(of: ["xcdatamodeld", "xcdatamodel"], in: target)
    let mappings = Self.files(of: ["xcmappingmodel"], in: target)
    let sources = target.sourceFiles(withSuffix: ".swift").map(\.url)
      .filter { !$0.path.hasPrefix(work.path) }

    var arguments = [
      "--module", target.moduleName, "--import", Self.importedModule(of: target),
      "--output", output.path,
    ]
    var outputs = [output]
    var inputs = sources
    for model in models {
      let name = model.deletingPathExtension().lastPathComponent
      let compiled = work.appending(path: "\(name).momd")
      arguments += ["--model", model.path, "--compiled", compiled.path]
      outputs.append(compiled)
      inputs += [model] + Self.files(in: model)
    }
    for mapping in mappings {
      let name = mapping.deletingPathExtension().lastPathComponent
      let compiled = work.appending(path: "\(name).cdm")
      arguments += ["--mapping", mapping.path, "--compiled-mapping", compiled.path]
      outputs.append(compiled)
      inputs += [mapping] + Self.files(in: mapping)
    }
    for source in sources { arguments += ["--source", source.path] }
    return [
      .buildCommand(
        displayName: "Generating managed object classes of \(target.name)",
        executable: try context.tool(named: "model-tool").url,
        arguments: arguments,
        inputFiles: inputs,
        outputFiles: outputs
      )
    ]
  }

  /// The files and packages of these kinds in a target, without those that are inside of others.
  private static func files(
    of kinds: Set<String>,
    in target: any SourceModuleTarget
  ) -> [URL] {
    var found: [URL] = []
    let contents = FileManager.default.enumerator(
      at: target.directoryURL,
      includingPropertiesForKeys: nil
    )
    while let url = contents?.nextObject() as? URL {
      guard kinds.contains(url.pathExtension) else { continue }
      found.append(url)
      contents?.skipDescendants()
    }
    return found.sorted { $0.path < $1.path }
  }

  private static func files(in folder: URL) -> [URL] {
    let contents = FileManager.default.enumerator(
      at: folder,
      includingPropertiesForKeys: [.isRegularFileKey]
    )
    var files: [URL] = []
    while let url = contents?.nextObject() as? URL {
      // A folder is no file; one that cannot be asked is left to the tool to report.
      if (try? url.resourceValues(forKeys: [.isRegularFileKey]).isRegularFile) ?? true {
        files.append(url)
      }
    }
    return files.sorted { $0.path < $1.path }
  }

  /// What the target itself imports: Apple's name where it depends on that, else our own.
  private static func importedModule(of target: any SourceModuleTarget) -> String {
    var names: Set<String> = []
    for dependency in target.dependencies {
      switch dependency {
      case .target(let target): names.insert(target.name)
      case .product(let product): names.insert(product.name)
      @unknown default: continue
      }
    }
    return ["CoreData", "CloudKitMirroring", "OpenCoreData"].first(where: names.contains)
      ?? "OpenCoreData"
  }
}
