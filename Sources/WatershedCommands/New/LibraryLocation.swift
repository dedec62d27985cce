import Foundation

/// Where a new package finds Watershed.
enum LibraryLocation: Hashable {
  /// A checkout, by its whole path.
  case checkout(String)
  /// A repository, from a version on.
  case repository(String, version: String)

  /// A location as a person writes it: an address, or a folder.
  ///
  /// - Returns: Nil where there is no checkout in the folder.
  init?(_ text: String, version: String) {
    if text.contains("://") || text.hasPrefix("git@") {
      self = .repository(text, version: version)
    } else {
      let folder = URL(fileURLWithPath: text, isDirectory: true).standardizedFileURL
      guard Self.isCheckout(folder) else { return nil }
      self = .checkout(folder.path)
    }
  }

  /// The checkout in whose build folder a program is.
  static func checkout(of program: URL) -> LibraryLocation? {
    var folder = program.resolvingSymlinksInPath().deletingLastPathComponent()
    while folder.path != "/", !folder.path.isEmpty {
      if isCheckout(folder) { return .checkout(folder.path) }
      folder.deleteLastPathComponent()
    }
    return nil
  }

  private static func isCheckout(_ folder: URL) -> Bool {
    ["Package.swift", "Sources/CloudKitMirroring"].allSatisfy {
      FileManager.default.fileExists(atPath: folder.appendingPathComponent($0).path)
    }
  }

  /// The dependency of a manifest.
  var dependency: String {
    switch self {
    case .checkout(let path): #".package(name: "watershed", path: \#(Self.literal(path)))"#
    case .repository(let address, let version):
      #".package(url: \#(Self.literal(address)), from: "\#(version)")"#
    }
  }

  private static func literal(_ text: String) -> String {
    "\"" + text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"") + "\""
  }
}
