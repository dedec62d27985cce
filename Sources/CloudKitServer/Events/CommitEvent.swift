import CloudKitWebServices

/// What one commit changed, for whoever watches the server.
package struct CommitEvent: Hashable, Sendable {
  package var container: String
  package var environment: ContainerEnvironment
  package var database: DatabaseScope
  package var zones: [String]
  package var userRecordName: String
  package var savedCount: Int
  package var deletedCount: Int
}
