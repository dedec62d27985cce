import Effects
import Foundation

/// Mapping models on disk: `.cdm`, and the `.xcmappingmodel` that Xcode edits.
enum MappingFile {
  static let extensions = ["cdm", "xcmappingmodel"]

  /// The contents of a file; one that Xcode has compiled identifies its models by their hashes.
  struct Contents {
    var mappings: [NSEntityMapping]
    var sourceVersion: String?
    var destinationVersion: String?
  }

  static func load(contentsOf url: URL) throws -> Contents {
    let data = try data(of: url)
    return data.starts(with: Data("bplist00".utf8))
      ? Contents(mappings: try MappingArchiveReader.mappings(in: data, file: url.path))
      : try MappingXMLReader.read(data, file: url.path)
  }

  /// The bytes of a file, or of the one file in a folder as Xcode writes it.
  static func data(of url: URL) throws -> Data {
    let found = try FileSystem.look(at: url.path)
    guard found != .missing else {
      throw ModelFileError(
        .unreadable,
        file: url.path,
        found: "there is no such file",
        expected: "a .cdm or an .xcmappingmodel"
      )
    }
    let file = found == .folder ? url.appendingPathComponent("xcmapping.xml") : url
    return try ModelFile.data(at: file)
  }

  /// The mapping models of the bundles that lead from one model to another.
  ///
  /// If no bundles are given, the directory of the destination's model file is searched first. A
  /// file that cannot be parsed is skipped. One that could not be read may be the right one: that
  /// throws, because a migration without it would lose data.
  static func mappings(
    in bundles: [Bundle]?,
    from source: NSManagedObjectModel,
    to destination: NSManagedObjectModel
  ) throws -> [NSEntityMapping]? {
    let near = try bundles == nil ? destination.sourceURL.map(filesBeside) ?? [] : []
    for file in near + ModelLocator.files(in: bundles, ofKinds: extensions) {
      do {
        let contents = try load(contentsOf: file)
        guard !contents.mappings.isEmpty else { continue }
        if leads(contents, from: source, to: destination) { return contents.mappings }
      } catch let error as ModelFileError where error.reason != .unreadable {
        StoreLog.warning("The mapping model \(file.path) is passed over: \(error)")
      }
    }
    return nil
  }

  private static func filesBeside(_ model: URL) throws -> [URL] {
    var folder = model.deletingLastPathComponent()
    if ["momd", "xcdatamodeld"].contains(folder.pathExtension) {
      folder.deleteLastPathComponent()
    }
    return try FileSystem.names(in: folder.path).map(folder.appendingPathComponent)
      .filter { extensions.contains($0.pathExtension) }
  }

  /// Whether every mapping matches the entities of the two models, and no changed entity lacks a
  /// mapping.
  static func leads(
    _ contents: Contents,
    from source: NSManagedObjectModel,
    to destination: NSManagedObjectModel
  ) -> Bool {
    let (before, after) = (source.entityVersionHashesByName, destination.entityVersionHashesByName)
    let fits = contents.mappings.allSatisfy { mapping in
      matches(mapping.sourceEntityName, mapping.sourceEntityVersionHash, before)
        && matches(mapping.destinationEntityName, mapping.destinationEntityVersionHash, after)
    }
    let package = destination.sourceURL?.deletingLastPathComponent()
    guard fits, isVersion(contents.sourceVersion, source, in: package) ?? false,
      isVersion(contents.destinationVersion, destination, in: package)
        ?? namesProperties(of: destination, in: contents.mappings)
    else { return false }
    let named = Set(contents.mappings.compactMap(\.destinationEntityName))
    let changed = after.filter { before[$0.key] != $0.value }.keys
    return changed.isEmpty || changed.contains { named.contains($0) }
  }

  /// Whether the model is the version with a name, according to the file beside the app's model;
  /// nil if there is no such file and the model's own file has another name.
  private static func isVersion(
    _ name: String?,
    _ model: NSManagedObjectModel,
    in package: URL?
  ) -> Bool? {
    guard let name else { return true }
    for kind in ["mom", "xcdatamodel"] {
      guard let file = package?.appendingPathComponent("\(name).\(kind)"),
        // A version that cannot be read cannot be compared.
        let version = try? ModelFile.load(contentsOf: file)
      else { continue }
      return version.entityVersionHashesByName == model.entityVersionHashesByName
    }
    let own = model.sourceURL?.deletingPathExtension().lastPathComponent
    return own == nil || own == name ? true : nil
  }

  /// Whether the mappings name each entity of the model, and of each all its properties.
  ///
  /// The mapping editor lists every property of a destination. A version that was renamed after its
  /// mapping model was made is recognized by that: the file keeps the former name.
  private static func namesProperties(
    of model: NSManagedObjectModel,
    in mappings: [NSEntityMapping]
  ) -> Bool {
    var unnamed = Set(model.entitiesByName.keys)
    for mapping in mappings {
      guard let name = mapping.destinationEntityName else { continue }
      guard let entity = model.entitiesByName[name] else { return false }
      let attributes = Set((mapping.attributeMappings ?? []).compactMap(\.name))
      let relationships = Set((mapping.relationshipMappings ?? []).compactMap(\.name))
      guard attributes == Set(entity.attributesByName.keys),
        relationships == Set(entity.relationshipsByName.keys)
      else { return false }
      unnamed.remove(name)
    }
    return unnamed.isEmpty
  }

  private static func matches(_ name: String?, _ hash: Data?, _ hashes: [String: Data]) -> Bool {
    guard let name, !name.isEmpty else { return true }
    guard let known = hashes[name] else { return false }
    return hash == nil || hash == known
  }
}
