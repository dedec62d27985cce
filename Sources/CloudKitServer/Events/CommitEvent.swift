import CloudKitWebServices

/// The changes of one commit, for observers of the server.
package struct CommitEvent: Hashable, Sendable {
  package var container: String
  package var environment: ContainerEnvironment
  package var database: DatabaseScope
  package var zones: [String]
  package var userRecordName: String
  package var savedCount: Int
  package var deletedCount: Int
}
