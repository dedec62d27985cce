import CloudKitWebServices
import Foundation

/// Admin calls about containers.
extension CloudKitService {
  private struct NamedContainer: Decodable {
    var container: String
  }

  private struct DeletedContainer: Decodable {
    var container: String
    /// Counts only.
    var isDryRun: Bool?
    /// Continues a deletion and begins none; one that has ended meanwhile is complete.
    var continues: Bool?
  }

  /// Seconds of erasing before the reply: longer ones are continued by further calls, or by the
  /// maintenance.
  private static let erasingBeforeReply = 20.0
  /// Seconds of counting for the line in the audit log.
  private static let countingBeforeDeletion = 5.0

  func administerContainers(
    _ verb: AdminEndpoint.Containers,
    _ call: AdminCall
  ) async throws -> AdminReply {
    switch verb {
    case .list: return try call.reply(["containers": try containers()], .unaudited(.reads))
    case .create:
      let name = try call.read(NamedContainer.self).container
      guard NameRules.isContainerName(name, limits), NameRules.isIdentifier(name) else {
        throw AdministrationError(description: NameRules.identifierRule)
      }
      guard try !containers().contains(name) else {
        throw AdministrationError(description: "The container \(name) already exists.")
      }
      try await write {
        var batch = WriteBatch()
        batch.container = name
        return (batch, ())
      }
      return call.done(auditLog.record("container.create", by: call, about: name))
    case .delete: return try await deleteContainer(call)
    }
  }

  private func deleteContainer(_ call: AdminCall) async throws -> AdminReply {
    let deleted: DeletedContainer = try call.read()
    let name = deleted.container
    guard name != configuration.ownContainer else {
      throw AdministrationError(
        description: "\(name) is the container of this server's configuration, and the next start "
          + "would create it again: name another one there (container) and restart the server first."
      )
    }
    guard try deleted.continues == true || containerErasures.isKnown(name) else {
      throw AdministrationError(description: "There is no container \(name).")
    }
    if deleted.isDryRun == true {
      let contents = try await containerErasures.contents(of: name)
      return try call.reply(
        ContainerDeletion(container: name, contents: contents, isComplete: false),
        .unaudited(.reads)
      )
    }
    var trace = AuditTrace.unaudited(.continues)
    if try deleted.continues != true && containers().contains(name) {
      // Files that cannot be listed prevent no deletion.
      let contents = try? await containerErasures.contents(
        of: name,
        within: Self.countingBeforeDeletion
      )
      try await containerErasures.begin(name)
      trace = auditLog.record(
        "container.delete",
        by: call,
        about: name,
        detail: contents?.summary ?? "contents not counted"
      )
    }
    let deletion = ContainerDeletion(
      container: name,
      isComplete: try await containerErasures.erase(name, for: Self.erasingBeforeReply)
    )
    return try call.reply(deletion, trace)
  }

  /// Finishes the deletion of a container, if one has begun.
  package func finishDeletion(of container: String) async throws {
    _ = try await containerErasures.erase(container, for: .infinity)
  }
}
