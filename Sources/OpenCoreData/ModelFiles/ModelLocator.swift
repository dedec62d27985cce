import Effects
import Foundation

/// Finds model files where SwiftPM, Xcode and hand-made apps put them.
///
/// The order: the given bundles, of which the main bundle includes the folders of SwiftPM; the main bundle; every `*.resources` folder beside the executable
/// and beside the main bundle; every loaded bundle. In each place a compiled model comes first.
package enum ModelLocator {
  /// The kinds of model file, in the order of preference.
  package static let extensions = ["momd", "mom", "xcdatamodeld", "xcdatamodel"]

  /// No model of a name was found.
  package struct NotFoundError: Error, CustomStringConvertible {
    package let name: String
    package let searched: [URL]

    package var description: String {
      let kinds = ModelLocator.extensions.map { "\(name).\($0)" }.joined(separator: ", ")
      let places = searched.map { "  \($0.path)" }.joined(separator: "\n")
      return "No model file named \(kinds) was found. The places searched were:\n\(places)\n"
        + "In Package.swift, list the model in the target's resources: "
        + ".copy(\"\(name).xcdatamodeld\")."
    }
  }

  package static func locate(name: String, in bundles: [Bundle]? = nil) throws -> URL {
    let places = searchPlaces(bundles: bundles)
    for place in places {
      for kind in extensions {
        let candidate = place.appendingPathComponent("\(name).\(kind)")
        if try FileSystem.isThere(candidate.path) { return candidate }
      }
    }
    throw NotFoundError(name: name, searched: places)
  }

  /// Every model file of the bundles, one for each name.
  package static func allModelFiles(in bundles: [Bundle]?) -> [URL] {
    var names: Set<String> = []
    var files: [URL] = []
    for place in searchPlaces(bundles: bundles, isExclusive: bundles != nil) {
      let contents = contents(of: place)
      for kind in extensions {
        for file in contents where file.pathExtension == kind {
          let name = file.deletingPathExtension().lastPathComponent
          if names.insert(name).inserted { files.append(file) }
        }
      }
    }
    return files
  }

  /// Every file of some kinds in the bundles.
  static func files(in bundles: [Bundle]?, ofKinds kinds: [String]) -> [URL] {
    searchPlaces(bundles: bundles, isExclusive: bundles != nil).flatMap { place in
      contents(of: place).filter { kinds.contains($0.pathExtension) }
    }
  }

  /// Every version of every model file of the bundles.
  package static func allModels(in bundles: [Bundle]?) -> [NSManagedObjectModel] {
    allModelFiles(in: bundles).flatMap { ModelFile.readableVersions(of: $0).map(\.model) }
  }

  /// The `*.resources` folders that SwiftPM made, beside the executable and the main bundle.
  package static func resourceFolders() -> [URL] {
    var parents: [URL] = []
    func add(_ url: URL?) {
      guard let url = url?.resolvingSymlinksInPath() else { return }
      if !parents.contains(url) { parents.append(url) }
    }
    add(Bundle.main.executableURL?.deletingLastPathComponent())
    add(Bundle.main.bundleURL)
    add(Bundle.main.bundleURL.deletingLastPathComponent())
    return parents.flatMap { parent in
      contents(of: parent).filter { $0.pathExtension == "resources" }
    }
  }

  private static func searchPlaces(bundles: [Bundle]?, isExclusive: Bool = false) -> [URL] {
    var places: [URL] = []
    func add(_ url: URL?) {
      guard let url = url?.standardizedFileURL else { return }
      if !places.contains(url) { places.append(url) }
    }
    func add(_ bundle: Bundle) {
      add(bundle.resourceURL)
      add(bundle.bundleURL)
    }
    for bundle in bundles ?? [] { add(bundle) }
    if isExclusive {
      // SwiftPM puts the resources of the program's targets beside its bundle.
      if bundles?.contains(Bundle.main) == true {
        for folder in resourceFolders() { add(folder) }
      }
      return places
    }
    add(Bundle.main)
    for folder in resourceFolders() { add(folder) }
    for bundle in Bundle.allBundles { add(bundle) }
    return places
  }

  private static func contents(of folder: URL) -> [URL] {
    // An unreadable folder holds nothing that could be opened.
    let found = try? FileManager.default.contentsOfDirectory(
      at: folder,
      includingPropertiesForKeys: nil
    )
    // Each name is asked for once: a folder may hold thousands of files.
    return (found ?? []).map { (name: $0.lastPathComponent, file: $0) }
      .sorted { $0.name < $1.name }
      .map(\.file)
  }
}

extension NSManagedObjectModel {
  /// Merges every model of the bundles; nil searches the app's own places.
  ///
  /// Models among the resources of the program's SwiftPM targets are in the main bundle.
  public class func mergedModel(from bundles: [Bundle]?) -> NSManagedObjectModel? {
    let models = ModelLocator.allModelFiles(in: bundles).compactMap { file in
      NSManagedObjectModel(contentsOf: file)
    }
    return models.isEmpty ? nil : NSManagedObjectModel(byMerging: models)
  }

  /// Merges those models of the bundles that a store was written with.
  public class func mergedModel(
    from bundles: [Bundle]?,
    forStoreMetadata metadata: [String: Any]
  ) -> NSManagedObjectModel? {
    NSManagedObjectModel(
      byMerging: ModelLocator.allModels(in: bundles),
      forStoreMetadata: metadata
    )
  }
}
