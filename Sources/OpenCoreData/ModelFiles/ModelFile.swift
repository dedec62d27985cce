import Effects
import Effects
import Foundation

/// Model files on disk: `.xcdatamodeld`, `.xcdatamodel`, `.momd`, `.mom`, and a bare `contents`.
///
/// The kind of a file is determined by its contents, not by its extension.
package enum ModelFile {
  /// Far beyond the largest model known.
  static let maximumBytes = 256 << 20

  /// One version of a model.
  package typealias Version = (name: String, model: NSManagedObjectModel)

  /// Reads a model file; of one with versions, the current one.
  package static func load(contentsOf url: URL) throws -> NSManagedObjectModel {
    switch try kind(of: url) {
    case .versionedSource:
      return try load(contentsOf: currentSource(of: url))
    case .source:
      return try readSource(url.appendingPathComponent("contents"), as: url)
    case .oldSource:
      throw oldFormat(url)
    case .compiledVersions:
      return try readCompiled(currentCompiled(of: url), as: url)
    case .file:
      return try readFile(url)
    }
  }

  /// Reads every version of a model file, in name order.
  package static func versions(of url: URL) throws -> [Version] {
    try versionFiles(of: url).map { (name($0), try load(contentsOf: $0)) }
  }

  /// The name of the version that the model file says is current.
  package static func currentVersionName(of url: URL) throws -> String {
    switch try kind(of: url) {
    case .versionedSource: name(try currentSource(of: url))
    case .compiledVersions: name(try currentCompiled(of: url))
    case .source, .oldSource, .file: name(url)
    }
  }

  /// Whether a model file is a package of versions.
  package static func isVersioned(_ url: URL) throws -> Bool {
    switch try kind(of: url) {
    case .versionedSource, .compiledVersions: true
    case .source, .oldSource, .file: false
    }
  }

  /// Reads the versions that can be read, and leaves out those in a form we refuse.
  package static func readableVersions(of url: URL) -> [Version] {
    // Unreadable versions are skipped: none of them can be the model of a store.
    ((try? versionFiles(of: url)) ?? []).compactMap { file in
      (try? load(contentsOf: file)).map { (name(file), $0) }
    }
  }

  // MARK: Kinds

  private enum Kind {
    case versionedSource, source, oldSource, compiledVersions, file
  }

  private static func kind(of url: URL) throws -> Kind {
    let found = try FileSystem.look(at: url.path)
    guard found != .missing else {
      throw ModelFileError(
        .unreadable,
        file: url.path,
        found: "there is no such file",
        expected: "an .xcdatamodeld, .xcdatamodel, .momd or .mom"
      )
    }
    guard found == .folder else { return .file }
    if try exists("contents", in: url) { return .source }
    if try exists("VersionInfo.plist", in: url) { return .compiledVersions }
    if try exists("elements", in: url) { return .oldSource }
    if try !children(of: url, extension: "xcdatamodel").isEmpty { return .versionedSource }
    if try !children(of: url, extension: "mom").isEmpty { return .compiledVersions }
    throw ModelFileError(
      .malformed,
      file: url.path,
      found: "the folder holds no version of a model",
      expected: "an .xcdatamodel, a .mom or a file named contents in it"
    )
  }

  private static func versionFiles(of url: URL) throws -> [URL] {
    switch try kind(of: url) {
    case .versionedSource: try children(of: url, extension: "xcdatamodel")
    case .compiledVersions: try children(of: url, extension: "mom")
    case .source, .oldSource, .file: [url]
    }
  }

  private static func currentSource(of url: URL) throws -> URL {
    let versions = try children(of: url, extension: "xcdatamodel")
    let marker = url.appendingPathComponent(".xccurrentversion")
    if try FileSystem.isThere(marker.path) {
      // An empty marker is treated as a missing one.
      if let name = try dictionary(at: marker)["_XCCurrentVersionName"] as? String {
        guard let current = versions.first(where: { $0.lastPathComponent == name }) else {
          throw ModelFileError(
            .inconsistent,
            file: marker.path,
            found: "the current version '\(name)' does not exist",
            expected: "one of \(names(versions))"
          )
        }
        return current
      }
    }
    let stem = url.deletingPathExtension().lastPathComponent
    // Without a marker Xcode takes the version of the package's own name, or the only one.
    let named = versions.first { $0.deletingPathExtension().lastPathComponent == stem }
    guard let version = named ?? versions.first else {
      throw ModelFileError(
        .malformed,
        file: url.path,
        found: "the package has no version",
        expected: "an .xcdatamodel in it"
      )
    }
    return version
  }

  private static func currentCompiled(of url: URL) throws -> URL {
    let versions = try children(of: url, extension: "mom")
    let info = url.appendingPathComponent("VersionInfo.plist")
    guard try FileSystem.isThere(info.path) else {
      guard let only = versions.first else {
        throw ModelFileError(
          .malformed,
          file: url.path,
          found: "the folder holds no compiled model",
          expected: "a .mom in it"
        )
      }
      return only
    }
    guard
      let name = try dictionary(at: info)["NSManagedObjectModel_CurrentVersionName"] as? String
    else {
      throw ModelFileError(
        .malformed,
        file: info.path,
        found: "the key NSManagedObjectModel_CurrentVersionName is missing",
        expected: "the name of the current version"
      )
    }
    guard
      let current = versions.first(where: {
        $0.deletingPathExtension().lastPathComponent == name
      })
    else {
      throw ModelFileError(
        .inconsistent,
        file: info.path,
        found: "the current version '\(name)' does not exist",
        expected: "one of \(names(versions))"
      )
    }
    return current
  }

  // MARK: Reading

  private static func readSource(_ file: URL, as url: URL) throws -> NSManagedObjectModel {
    let model = try ModelXMLReader.model(from: data(at: file), file: file.path)
    model.sourceURL = url
    return model
  }

  private static func readCompiled(_ file: URL, as url: URL) throws -> NSManagedObjectModel {
    let model = try ModelArchive.model(fromArchive: data(at: file), file: file.path)
    model.sourceURL = url
    return model
  }

  private static func readFile(_ url: URL) throws -> NSManagedObjectModel {
    let data = try data(at: url)
    if data.starts(with: Data("bplist00".utf8)) {
      return try readCompiled(url, as: url)
    }
    if data.starts(with: Data("momv2$".utf8)) {
      throw ModelFileError(
        .unsupported,
        file: url.path,
        found: "this is an optimized model (.omo)",
        expected: "the .mom beside it"
      )
    }
    return try readSource(url, as: url)
  }

  private static func oldFormat(_ url: URL) -> ModelFileError {
    ModelFileError(
      .unsupported,
      file: url.path,
      element: "elements",
      found: "the model has a binary format from before Xcode 4",
      expected: "an XML file named contents; open the model in Xcode 4 or later and save it"
    )
  }

  static func data(at url: URL) throws -> Data {
    do {
      let size = try url.resourceValues(forKeys: [.fileSizeKey]).fileSize ?? 0
      guard size <= maximumBytes else {
        throw ModelFileError(
          .malformed,
          file: url.path,
          found: "the file has \(size) bytes",
          expected: "at most \(maximumBytes)"
        )
      }
      return try Data(contentsOf: url)
    } catch let error as ModelFileError {
      throw error
    } catch {
      throw ModelFileError(
        .unreadable,
        file: url.path,
        found: "the file cannot be read (\(error.localizedDescription))",
        expected: "a readable file"
      )
    }
  }

  private static func dictionary(at url: URL) throws -> [String: Any] {
    let data = try data(at: url)
    // Any failure to parse is reported as what it means for the model.
    let plist = try? PropertyListSerialization.propertyList(from: data, format: nil)
    guard let dictionary = plist as? [String: Any] else {
      throw ModelFileError(
        .malformed,
        file: url.path,
        found: "the file is not a property list",
        expected: "a dictionary"
      )
    }
    return dictionary
  }

  private static func exists(_ name: String, in url: URL) throws -> Bool {
    try FileSystem.isThere(url.appendingPathComponent(name).path)
  }

  private static func children(of url: URL, extension kind: String) throws -> [URL] {
    do {
      return try FileManager.default.contentsOfDirectory(
        at: url,
        includingPropertiesForKeys: nil
      )
      .filter { $0.pathExtension == kind }
      .sorted { name($0) < name($1) }
    } catch {
      throw ModelFileError(
        .unreadable,
        file: url.path,
        found: "the folder cannot be read (\(error.localizedDescription))",
        expected: "a readable folder"
      )
    }
  }

  private static func name(_ url: URL) -> String {
    url.deletingPathExtension().lastPathComponent
  }

  private static func names(_ urls: [URL]) -> String {
    urls.map { "'\(name($0))'" }.joined(separator: ", ")
  }
}

extension NSManagedObjectModel {
  /// Reads a model file, compiled or as Xcode writes it; nil when it cannot be read.
  ///
  /// `ModelFile.load(contentsOf:)` says why; this initializer writes the reason to the standard
  /// error, as Core Data logs it.
  public convenience init?(contentsOf url: URL) {
    do {
      let model = try ModelFile.load(contentsOf: url)
      self.init()
      take(model)
    } catch {
      StandardError.print("CoreData: error: \(error)")
      return nil
    }
  }
}
