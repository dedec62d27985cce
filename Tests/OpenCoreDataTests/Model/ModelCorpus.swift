import Foundation
import Testing

/// The folder of published models and stores, on machines that have it.
enum ModelCorpus {
  /// The folder `corpus`; nil if it is missing, and tests that need it are skipped.
  static let folder: URL? = {
    let files = FileManager.default
    if let shared = ProcessInfo.processInfo.environment["WATERSHED_SHARED"] {
      let corpus = URL(fileURLWithPath: shared).appendingPathComponent("corpus")
      return files.fileExists(atPath: corpus.path) ? corpus : nil
    }
    var place = URL(fileURLWithPath: #filePath)
    while place.path != "/" {
      place.deleteLastPathComponent()
      let corpus = place.appendingPathComponent("shared/corpus")
      if files.fileExists(atPath: corpus.path) { return corpus }
    }
    return nil
  }()

  static var isPresent: Bool { folder != nil }

  static let missing: Comment = "The corpus is not on this machine (set WATERSHED_SHARED)."

  static func contents(_ name: String) throws -> [URL] {
    let folder = try #require(folder).appendingPathComponent(name)
    return try FileManager.default.contentsOfDirectory(
      at: folder,
      includingPropertiesForKeys: nil
    )
    .sorted { $0.lastPathComponent < $1.lastPathComponent }
  }

  static func modelPackages() throws -> [URL] {
    try contents("models").filter { $0.pathExtension.hasPrefix("xcdatamodel") }
  }

  /// The model sources of every version of every package.
  static func modelSources() throws -> [URL] {
    var sources: [URL] = []
    for package in try modelPackages() {
      let enumerator = FileManager.default.enumerator(at: package, includingPropertiesForKeys: nil)
      while let file = enumerator?.nextObject() as? URL {
        if file.lastPathComponent == "contents" { sources.append(file) }
      }
    }
    return sources.sorted { $0.path < $1.path }
  }

  static func stores() throws -> [URL] {
    try contents("stores").filter { file in
      let name = file.lastPathComponent
      return !name.hasSuffix("-wal") && !name.hasSuffix("-shm") && !name.hasSuffix(".tsv")
        && !name.hasSuffix(".json")
    }
  }
}

/// Random numbers with a seed that a failing test can report.
struct SeededNumbers: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64) {
    state = seed
  }

  /// SplitMix64.
  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var value = state
    value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
    value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
    return value ^ (value >> 31)
  }
}
