import CloudKitServer
import CloudKitServerHTTP
import Foundation

/// The backups of one folder that `--in` has named.
struct KeptBackups {
  private let newest: URL
  private let parent: URL

  /// What a deletion of old backups came to.
  struct Deletion {
    /// The paths or addresses of what was deleted.
    var deleted: [String] = []
    /// Backups that were made, by their manifests, at a later time than the one that was just made.
    var future: [String] = []
    /// What was not deleted, with the reasons.
    var failures: [String] = []
  }

  init(beside newest: URL) {
    self.newest = newest
    parent = newest.deletingLastPathComponent()
  }

  /// `2026-01-31T033000Z`: names are in the order of time.
  static func name(of date: Date) -> String {
    date.formatted(.iso8601).replacing(":", with: "")
  }

  /// Whether `--in` has made the name.
  static func isName(_ text: String) -> Bool {
    text.wholeMatch(of: /\d{4}-\d\d-\d\dT\d{6}Z/) != nil
  }

  /// Throws if the newest is damaged.
  func check() throws {
    let problems = try BackupFolder(newest).problems()
    guard problems.isEmpty else {
      throw BackupError(
        description:
          "\(newest.path) is damaged, so no older backup was deleted: "
          + problems.joined(separator: "; ")
      )
    }
  }

  // MARK: Choosing

  /// A complete backup.
  struct Complete: Hashable {
    var name: String
    /// Milliseconds since 1970, by the manifest.
    var created: Int64
  }

  /// The complete backups to delete, and those of a later time than the one that was just made.
  ///
  /// That one and the newest older ones stay, `count` together. Those of a later time, which a wrong clock has made,
  /// stay too: the wrong clock may be the present one.
  static func choose(
    _ backups: [Complete],
    keeping count: Int,
    made: String
  ) -> (old: [String], oldest: String, future: [String]) {
    guard let own = backups.first(where: { $0.name == made }) else { return ([], "", []) }
    let others = backups.filter { $0.name != made }
      .sorted { ($0.created, $0.name) < ($1.created, $1.name) }
    let earlier = others.filter { $0.created <= own.created }.map(\.name)
    let kept = earlier.suffix(count - 1)
    return (
      Array(earlier.dropLast(count - 1)),
      (kept + [made]).min() ?? made,
      others.filter { $0.created > own.created }.map(\.name)
    )
  }

  // MARK: Deleting

  /// Deletes the oldest, after the newest was checked.
  ///
  /// Only folders with a name of this kind and a readable manifest are backups: all else stays, but for the
  /// incomplete backups of killed commands, and deletions, that are older than every backup to keep.
  func delete(allBut count: Int) throws -> Deletion {
    let names = try FileManager.default.contentsOfDirectory(atPath: parent.path)
    let complete = names.filter(Self.isName).compactMap { name in
      (try? BackupFolder(parent.appendingPathComponent(name)).manifest())
        .map { Complete(name: name, created: $0.created) }
    }
    let choice = Self.choose(complete, keeping: count, made: newest.lastPathComponent)
    let incomplete = names.filter {
      $0.wholeMatch(of: /\d{4}-\d\d-\d\dT\d{6}Z\.partial/) != nil && $0 < choice.oldest
    }
    var result = Deletion(future: choice.future)
    for name in choice.old + incomplete.sorted() {
      let old = parent.appendingPathComponent(name)
      do {
        try remove(old)
        result.deleted.append(old.path)
      } catch {
        result.failures.append("\(old.path): \(error.systemReason)")
      }
    }
    return result
  }

  /// Removes a backup, which first gets the name of an incomplete one: a removal that is killed leaves no folder
  /// that is taken for a backup.
  private func remove(_ backup: URL) throws {
    let manager = FileManager.default
    guard backup.pathExtension.isEmpty else { return try manager.removeItem(at: backup) }
    let partial = backup.appendingPathExtension("partial")
    try manager.moveItem(at: backup, to: partial)
    try manager.removeItem(at: partial)
  }

  /// Deletes the oldest backups of a bucket.
  ///
  /// Only what has a name of this kind is deleted, as in a folder: all else stays. So do a backup with an
  /// unreadable manifest, and for a day what has none: another run may be uploading it.
  static func delete(
    in backups: S3Backups,
    at place: BucketAddress,
    allBut count: Int,
    made: String,
    now: Date = Date()
  ) async throws -> Deletion {
    let names = try await backups.names().filter(isName)
    let aDayAgo = name(of: now.addingTimeInterval(-86_400))
    var (complete, incomplete): ([Complete], [String]) = ([], [])
    for name in names {
      switch try await backups.manifest(of: name) {
      case .readable(let manifest):
        complete.append(Complete(name: name, created: manifest.created))
      case .missing where name < aDayAgo: incomplete.append(name)
      case .missing, .unreadable: continue
      }
    }
    let choice = choose(complete, keeping: count, made: made)
    let old = choice.old + incomplete.filter { $0 < choice.oldest }
    for name in old { try await backups.delete(name) }
    // Parts of killed uploads are in no listing, and are paid for.
    try await backups.abortUploads(before: now.addingTimeInterval(-86_400), of: isName)
    return Deletion(
      deleted: old.map { place.appending($0).text },
      future: choice.future.map { place.appending($0).text }
    )
  }
}
