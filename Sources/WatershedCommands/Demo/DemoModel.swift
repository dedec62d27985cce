import Foundation
import OpenCoreData

/// The model a demo runs with, ready for data that this program does not know the classes of.
package struct DemoModel {
  package let name: String
  package let model: NSManagedObjectModel
  /// Transformers that the model names and only its app has; a stand-in took their place.
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

  /// The brief's model, found beside the package: in the working folder, or above the program.
  package static func posts() throws -> DemoModel {
    var places: [URL] = []
    let starts = [
      URL(fileURLWithPath: FileManager.default.currentDirectoryPath),
      URL(fileURLWithPath: CommandLine.arguments.first ?? ".").deletingLastPathComponent()
        .resolvingSymlinksInPath(),
    ]
    for start in starts {
      var folder = start
      for _ in 0..<6 {
        let place = folder.appendingPathComponent("Examples/Posts.xcdatamodeld")
        if FileManager.default.fileExists(atPath: place.path) { return try load(path: place.path) }
        places.append(place)
        folder.deleteLastPathComponent()
      }
    }
    let list = places.prefix(4).map(\.path).joined(separator: ", ")
    throw DemoFailure(
      "The demo's model was not found. Looked for \(list) and further up. "
        + "Run the demo in the project's folder, or give a model with --model."
    )
  }

  /// An app's own transformers are not here; values are archived in their place.
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
