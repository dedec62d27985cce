import Effects
import Foundation

/// Compiles a model package into what apps carry: `Name.momd`, with a `.mom` for each version.
package enum ModelCompiler {
  /// Compiles every version of a model into a folder, which is replaced.
  ///
  /// Equal models give equal bytes.
  package static func compile(_ model: URL, into folder: URL) throws {
    let versions = try ModelFile.versions(of: model)
    let current = try ModelFile.currentVersionName(of: model)
    if try FileSystem.look(at: folder.path) == .folder {
      try FileSystem.removeFolder(folder.path)
    } else {
      try FileSystem.remove(folder.path)
    }
    try FileSystem.makeFolder(folder.path)
    for version in versions {
      try ModelArchive.archive(of: version.model)
        .write(to: folder.appendingPathComponent("\(version.name).mom"))
    }
    try Data(versionInfo(current: current, versions).utf8)
      .write(to: folder.appendingPathComponent("VersionInfo.plist"))
  }

  /// Written by hand, because Foundation writes a dictionary in any order.
  private static func versionInfo(current: String, _ versions: [ModelFile.Version]) -> String {
    var text = """
      <?xml version="1.0" encoding="UTF-8"?>
      <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" \
      "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
      <plist version="1.0">
      <dict>
      \t<key>NSManagedObjectModel_CurrentVersionName</key>
      \t<string>\(escaped(current))</string>
      \t<key>NSManagedObjectModel_VersionChecksums</key>
      \t<dict>

      """
    for version in versions {
      text += "\t\t<key>\(escaped(version.name))</key>\n"
      text += "\t\t<string>\(version.model.versionChecksum)</string>\n"
    }
    text += "\t</dict>\n\t<key>NSManagedObjectModel_VersionHashes</key>\n\t<dict>\n"
    for version in versions {
      text += "\t\t<key>\(escaped(version.name))</key>\n\t\t<dict>\n"
      let hashes = version.model.entityVersionHashesByName
      for (entity, hash) in hashes.sorted(by: { $0.key < $1.key }) {
        text += "\t\t\t<key>\(escaped(entity))</key>\n"
        text += "\t\t\t<data>\(hash.base64EncodedString())</data>\n"
      }
      text += "\t\t</dict>\n"
    }
    return text + "\t</dict>\n</dict>\n</plist>\n"
  }

  private static func escaped(_ text: String) -> String {
    text.replacingOccurrences(of: "&", with: "&amp;").replacingOccurrences(of: "<", with: "&lt;")
      .replacingOccurrences(of: ">", with: "&gt;")
  }
}
