import Foundation

/// The place where the version of a model reference is looked for.
enum ModelVersionSearch {
  case model(NSManagedObjectModel)
  case file(URL)
  case name(String, Bundle?)
  case hashes([AnyHashable: Any], Bundle?)

  /// The version with a checksum; throws `NSManagedObjectModelReferenceNotFoundError` if there is none.
  func version(withChecksum checksum: String) throws -> NSManagedObjectModel {
    func matches(_ version: ModelFile.Version) -> Bool { version.model.versionChecksum == checksum }
    switch self {
    case .model(let model):
      guard model.versionChecksum == checksum else {
        throw failure("The model's checksum is \(model.versionChecksum), not \(checksum).")
      }
      return model
    case .file(let url):
      let versions = ModelFile.readableVersions(of: url)
      if let found = versions.first(where: matches) { return found.model }
      let names = versions.map { "'\($0.name)'" }.joined(separator: ", ")
      throw failure(
        versions.isEmpty
          ? "No model can be read from \(url.path), where the checksum \(checksum) is looked for."
          : "Of the versions \(names) in \(url.path) none has the checksum \(checksum).",
        [NSFilePathErrorKey: url.path]
      )
    case .name(let name, let bundle):
      // Without a file of the name the versions of the other files are compared.
      let named = try? ModelLocator.locate(name: name, in: bundle.map { [$0] })
      let own = named.map { ModelFile.readableVersions(of: $0) } ?? []
      if let found = own.first(where: matches) { return found.model }
      let versions = Self.versions(in: bundle).filter(matches)
      if let found = versions.first(where: { $0.name == name }) ?? versions.first {
        return found.model
      }
      throw failure(
        "No version of a model with the checksum \(checksum) was found; '\(name)' was looked for in "
          + Self.place(bundle)
      )
    case .hashes(let hashes, let bundle):
      let found = Self.versions(in: bundle).first { version in
        matches(version)
          && version.model.entityVersionHashesByName.allSatisfy {
            hashes[$0.key] as? Data == $0.value
          }
      }
      if let found { return found.model }
      throw failure(
        "No version of a model with the checksum \(checksum) and the entity hashes was found in "
          + Self.place(bundle)
      )
    }
  }

  /// Every version in a bundle, and in the app's other places: SwiftPM puts an app's resources
  /// beside its main bundle.
  private static func versions(in bundle: Bundle?) -> [ModelFile.Version] {
    let own = bundle.map { ModelLocator.allModelFiles(in: [$0]) } ?? []
    let all = ModelLocator.allModelFiles(in: nil).filter { !own.contains($0) }
    return (own + all).flatMap { ModelFile.readableVersions(of: $0) }
  }

  private static func place(_ bundle: Bundle?) -> String {
    (bundle.map { "\($0.bundlePath) and in " } ?? "") + "the app's bundles."
  }

  private func failure(_ text: String, _ userInfo: [String: Any] = [:]) -> NSError {
    var userInfo = userInfo
    userInfo["reason"] = text
    userInfo[NSLocalizedDescriptionKey] = text
    return MigrationError.make(NSManagedObjectModelReferenceNotFoundError, userInfo)
  }
}
