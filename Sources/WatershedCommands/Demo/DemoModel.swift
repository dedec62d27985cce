import Foundation
import OpenCoreData

/// The model of a demo, usable without the classes of its app.
package struct DemoModel {
  package let name: String
  package let model: NSManagedObjectModel
  /// Transformers that the model names and only its app has; each has a stand-in.
  package let standInTransformers: [String]

  /// Reads an `.xcdatamodeld`, an `.xcdatamodel` or a compiled model.
  package static func load(path: String) throws -> DemoModel {
    let url = URL(fileURLWithPath: path)
    guard FileManager.default.fileExists(atPath: url.path) else {
      throw DemoFailure("There is no model at \(path).", exitCode: 2)
    }
    let model: NSManagedObjectModel
    do {
      model = try ModelFile.load(contentsOf: url)
    } catch {
      throw DemoFailure("\(error)", exitCode: 2)
    }
    let standIns = registerStandIns(for: model)
    let name = url.deletingPathExtension().lastPathComponent
    return DemoModel(name: name, model: model, standInTransformers: standIns)
  }

  /// The model of a blog with posts, which is part of the program.
  package static func posts() throws -> DemoModel {
    let folder = FileManager.default.temporaryDirectory
      .appendingPathComponent("watershed-demo-model-\(UUID().uuidString)")
    let package = folder.appendingPathComponent("Posts.xcdatamodeld")
    let version = package.appendingPathComponent("Posts.xcdatamodel")
    defer { try? FileManager.default.removeItem(at: folder) }
    try FileManager.default.createDirectory(at: version, withIntermediateDirectories: true)
    try Data(PostsModel.contents.utf8).write(to: version.appendingPathComponent("contents"))
    return try load(path: package.path)
  }

  /// Registers stand-ins for an app's own transformers; values are archived instead.
  private static func registerStandIns(for model: NSManagedObjectModel) -> [String] {
    var names: Set<String> = []
    for entity in model.entities {
      for attribute in entity.attributesByName.values
      where attribute.attributeType == .transformableAttributeType {
        guard let name = attribute.valueTransformerName, !name.isEmpty else { continue }
        let transformerName = NSValueTransformerName(name)
        if ValueTransformer.valueTransformer(forName: transformerName) == nil {
          ValueTransformer.setValueTransformer(
            NSSecureUnarchiveFromDataTransformer(),
            forName: transformerName
          )
          names.insert(name)
        }
      }
    }
    return names.sorted()
  }
}
