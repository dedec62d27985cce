import CloudKitWebServices
import Foundation

/// Admin calls about containers.
extension CloudKitService {
  private struct NamedContainer: Decodable {
    var container: String
  }

  func administerContainers(
    _ verb: AdminEndpoint.Containers,
    _ call: AdminCall
  ) async throws -> Data {
    switch verb {
    case .list: return try call.write(["containers": try containers()])
    case .create:
      let name = try call.read(NamedContainer.self).container
      guard NameRules.isContainerName(name, limits), NameRules.isIdentifier(name) else {
        throw AdministrationError(
          description: "A container has a name such as iCloud.org.example.app: letters, digits, "
            + "hyphens, underscores and points."
        )
      }
      guard try !containers().contains(name) else {
        throw AdministrationError(description: "There is a container \(name) already.")
      }
      try await write {
        var batch = WriteBatch()
        batch.container = name
        return (batch, ())
      }
      auditLog.record("container.create", by: call, about: name)
      return AdminCall.done
    }
  }
}
