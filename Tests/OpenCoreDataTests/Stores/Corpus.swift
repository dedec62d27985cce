import Foundation

/// Stores and models that Apple's tools wrote, if they are available.
enum Corpus {
  /// The folder, from the environment or beside the checkout.
  static let folder: URL? = {
    if let path = ProcessInfo.processInfo.environment["WATERSHED_SHARED"] {
      return existing(URL(fileURLWithPath: path).appendingPathComponent("corpus"))
    }
    var folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    while folder.path != "/" {
      if let found = existing(folder.appendingPathComponent("shared/corpus")) { return found }
      folder.deleteLastPathComponent()
    }
    return nil
  }()

  static var isPresent: Bool { folder != nil }

  private static func existing(_ url: URL) -> URL? {
    FileManager.default.fileExists(atPath: url.path) ? url : nil
  }

  /// The names of the stores.
  static let storeNames: [String] = {
    guard let folder else { return [] }
    let names = try? FileManager.default.contentsOfDirectory(
      atPath: folder.appendingPathComponent("stores").path
    )
    let kinds = [".sqlite", ".original", ".aside"]
    return (names ?? []).filter { name in kinds.contains { name.hasSuffix($0) } }.sorted()
  }()

  /// Copies a store and its files into a folder.
  static func copyStore(_ name: String, to target: URL) throws -> URL {
    guard let folder else { throw CocoaError(.fileNoSuchFile) }
    let source = folder.appendingPathComponent("stores")
    for suffix in ["", "-wal"] {
      let file = source.appendingPathComponent(name + suffix)
      guard FileManager.default.fileExists(atPath: file.path) else { continue }
      let copy = target.appendingPathComponent(name + suffix)
      try Data(contentsOf: file).write(to: copy)
    }
    return target.appendingPathComponent(name)
  }

  /// The contents folders or files of all model versions in XML.
  static let modelVersions: [URL] = {
    guard let folder else { return [] }
    let root = folder.appendingPathComponent("models")
    let all = FileManager.default.enumerator(at: root, includingPropertiesForKeys: nil)
    var result: [URL] = []
    while let url = all?.nextObject() as? URL {
      if url.pathExtension == "xcdatamodel" { result.append(url) }
    }
    return result.sorted { $0.path < $1.path }
  }()
}

/// A folder that is removed after the test.
final class ScratchFolder {
  let url: URL

  init() throws {
    url = FileManager.default.temporaryDirectory
      .appendingPathComponent("watershed-store-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
  }

  deinit {
    try? FileManager.default.removeItem(at: url)
  }

  func file(_ name: String) -> URL { url.appendingPathComponent(name) }
}
