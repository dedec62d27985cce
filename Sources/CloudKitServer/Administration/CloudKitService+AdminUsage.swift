import CloudKitWebServices
import Foundation

/// The size of one database.
package struct DatabaseUsage: Codable, Hashable, Sendable {
  package var container: String
  package var environment: ContainerEnvironment
  package var database: DatabaseScope
  /// Nil for a public database.
  package var userName: String?
  /// The bytes that count against the quota: records, indexes and files.
  package var bytes: Int64
  /// The number of files.
  package var files: Int
  /// The bytes of the files, which `bytes` includes.
  package var fileBytes: Int64
  /// Nil: no limit.
  package var quota: Int64?
}

/// A page of `usage/list`.
package struct UsagePage: Codable, Hashable, Sendable {
  package var databases: [DatabaseUsage]
  /// The account to continue after; nil on the last page.
  package var next: String?
}

/// Admin calls about the sizes of databases.
extension CloudKitService {
  /// The public databases, then those of a page of accounts.
  func listUsage(_ call: AdminCall) async throws -> AdminReply {
    let page: AdminPage = try call.read()
    var found: [DatabaseUsage] = []
    if page.after == nil {
      for container in try containers() {
        // The public database has no owner.
        found += try await usage(container: container, owner: "", userName: nil)
      }
    }
    let owners = try storage.read { try $0.accounts(after: page.after, limit: page.size) }
    for account in owners {
      for user in try storage.read({ try $0.users(account: account.id) }) {
        found += try await usage(
          container: user.container,
          owner: user.recordName,
          userName: account.userName
        )
      }
    }
    return try call.reply(
      UsagePage(
        databases: found,
        next: owners.count == page.size ? owners.last?.userName : nil
      ),
      auditLog.record("usage.list", by: call, about: page.after ?? "")
    )
  }

  private func usage(
    container: String,
    owner: String,
    userName: String?
  ) async throws -> [DatabaseUsage] {
    let owned = try storage.read { try $0.partitions(container: container, owner: owner) }
    var found: [DatabaseUsage] = []
    for (key, partition) in owned {
      let files = try await assets.store.files(in: partition)
      found.append(
        DatabaseUsage(
          container: container,
          environment: key.environment,
          database: key.scope,
          userName: userName,
          bytes: try await quotas.usedBytes(in: partition),
          files: files.count,
          fileBytes: files.reduce(0) { $0 + $1.size },
          quota: key.scope == .public ? limits.publicQuota : limits.userQuota
        )
      )
    }
    return found.sorted {
      ($0.environment.rawValue, $0.database.rawValue)
        < ($1.environment.rawValue, $1.database.rawValue)
    }
  }
}
