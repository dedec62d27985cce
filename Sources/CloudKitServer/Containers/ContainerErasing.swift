/// The entry of a container that is being deleted: stored in the transaction that ends its credentials,
/// so that a server that stops in between continues later.
///
/// After the last row was removed, the entry stays for a while with an expiry: requests that began before
/// the deletion create nothing in the container. Opening the container removes it.
enum ContainerErasing {
  /// Seconds that the entry stays: no request takes that long.
  static let memory = 3600.0

  static func key(_ container: String) -> DirectoryEntry.Key {
    DirectoryEntry.Key(.containerErasing, container)
  }
}

/// The amounts of data of a container, in both environments.
package struct ContainerContents: Codable, Hashable, Sendable {
  /// The accounts that have signed in to it.
  package var people = 0
  package var databases = 0
  /// The number of records, without those of the users themselves.
  package var records: Int64 = 0
  /// The bytes that count against quotas: records, indexes and files.
  package var bytes: Int64 = 0
  package var files = 0
  package var fileBytes: Int64 = 0
  package var apiTokens = 0
  package var keys = 0

  package init() {}

  /// A summary of the data that a deletion loses, for the confirmation and for the audit log.
  package var summary: String {
    [
      (Int64(people), "person", "people"), (records, "record", "records"),
      (bytes, "byte", "bytes"), (Int64(files), "file", "files"),
      (Int64(apiTokens), "API token", "API tokens"), (Int64(keys), "key", "keys"),
    ].map { "\($0) \($0 == 1 ? $1 : $2)" }.joined(separator: ", ")
  }
}

/// The reply to `containers/delete`.
package struct ContainerDeletion: Codable, Hashable, Sendable {
  package var container: String
  /// The counted contents, for a trial; nil otherwise.
  package var contents: ContainerContents?
  /// Whether nothing is left; otherwise the server continues, and so does a further call.
  package var isComplete: Bool
}
