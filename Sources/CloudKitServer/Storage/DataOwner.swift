import Foundation

/// The user whose server uses a data folder, as the owners of its files show it.
///
/// The folder itself may be root's: a volume of a container, whose server's user may write by its group.
package struct DataOwner {
  /// The files and folders that every server or its commands make, the most important first.
  private static let made = [
    "watershed.sqlite", "field-keys.json", "openings", CloudKitService.assetFolderName,
    "admin-token", "lock",
  ]

  private let folder: URL
  private let user: UInt32
  /// A file or folder of the user, for `chown --reference`; with a slash, since the folder may be a link.
  package let reference: String

  /// The owner of most of the server's files; where there are as many of two users, the folder's.
  ///
  /// Files of root in another user's folder do not count: a command of root has made them.
  package init?(of folder: URL) {
    guard let own = FileOwner(ofFolder: folder)?.user else { return nil }
    let paths = Self.made.map { folder.appendingPathComponent($0).path }
    let found = paths.compactMap { path in
      FileOwner(ofItemAt: path).map { (path: path, user: $0.user) }
    }.filter { $0.user != 0 || own == 0 }
    let counts = Dictionary(found.map { ($0.user, 1) }, uniquingKeysWith: +)
    let most = counts.values.max()
    let candidates = [own] + found.map(\.user)
    // Root last: its server may use the files of all users.
    let chosen = candidates.filter { counts[$0] == most }.first { $0 != 0 } ?? own
    self.folder = folder
    user = chosen
    let shown = chosen == own ? nil : found.first { $0.user == chosen }?.path
    reference = shown ?? folder.path + "/"
  }

  /// The files and folders that the server may not use, since they belong to another user, by their names in the folder.
  ///
  /// Files of records are not among them: there may be millions. Nor is `lost+found`, which every ext4 volume has.
  package var foreignItems: [String] {
    // Root's server may use all.
    guard user != 0 else { return [] }
    let assets = CloudKitService.assetFolderName
    let inAssets = names(in: folder.appendingPathComponent(assets)).map { "\(assets)/\($0)" }
    return (names(in: folder) + inAssets).filter { name in
      let found = FileOwner(ofItemAt: folder.appendingPathComponent(name).path)
      return found.map { $0.user != user } ?? false
    }.sorted()
  }

  private func names(in folder: URL) -> [String] {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
    return names.filter { $0 != "lost+found" }
  }

  /// The command that gives the foreign files and folders to the server's user; nil if there are none.
  package var remedy: String? {
    let paths = foreignItems.map { folder.appendingPathComponent($0).path }
    return paths.isEmpty ? nil : remedy(for: paths)
  }

  /// The command that gives files, and folders with all that is in them, to the server's user.
  func remedy(for paths: [String]) -> String {
    "chown -R --reference=\(reference) \(paths.joined(separator: " "))"
  }
}
