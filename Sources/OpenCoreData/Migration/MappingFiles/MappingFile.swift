import Foundation

/// Mapping models on disk: `.cdm`, and the `.xcmappingmodel` that Xcode edits.
enum MappingFile {
  static let extensions = ["cdm", "xcmappingmodel"]

  static func load(contentsOf url: URL) throws -> [NSEntityMapping] {
    var isFolder: ObjCBool = false
    let exists = FileManager.default.fileExists(atPath: url.path, isDirectory: &isFolder)
    guard exists else {
      throw ModelFileError(
        .unreadable,
        file: url.path,
        found: "there is no such file",
        expected: "a .cdm or an .xcmappingmodel"
      )
    }
    let file = isFolder.boolValue ? url.appendingPathComponent("xcmapping.xml") : url
    let data = try ModelFile.data(at: file)
    return data.starts(with: Data("bplist00".utf8))
      ? try MappingArchiveReader.mappings(in: data, file: file.path)
      : try MappingXMLReader.mappings(in: data, file: file.path)
  }

  /// The mappings of the bundles that lead from one set of version hashes to another.
  static func mappings(
    in bundles: [Bundle]?,
    from source: [String: Data],
    to destination: [String: Data]
  ) -> [NSEntityMapping]? {
    for file in ModelLocator.files(in: bundles, ofKinds: extensions) {
      // A file that cannot be read is not the one that is looked for.
      guard let mappings = try? load(contentsOf: file), !mappings.isEmpty else { continue }
      if leads(mappings, from: source, to: destination) { return mappings }
    }
    return nil
  }

  /// Every mapping names entities as the two models have them, and none has changed unmentioned.
  static func leads(
    _ mappings: [NSEntityMapping],
    from source: [String: Data],
    to destination: [String: Data]
  ) -> Bool {
    let fits = mappings.allSatisfy { mapping in
      matches(mapping.sourceEntityName, mapping.sourceEntityVersionHash, source)
        && matches(mapping.destinationEntityName, mapping.destinationEntityVersionHash, destination)
    }
    guard fits else { return false }
    let named = Set(mappings.compactMap(\.destinationEntityName))
    let changed = destination.filter { source[$0.key] != $0.value }.keys
    let mentioned = changed.contains { named.contains($0) }
    return changed.isEmpty || mentioned
  }

  private static func matches(_ name: String?, _ hash: Data?, _ hashes: [String: Data]) -> Bool {
    guard let name, !name.isEmpty else { return true }
    guard let known = hashes[name] else { return false }
    return hash == nil || hash == known
  }
}
