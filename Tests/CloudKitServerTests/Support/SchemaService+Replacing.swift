import CloudKitWebServices
import Effects
import Foundation

@testable import CloudKitServer

extension SchemaService {
  /// Replaces a schema, without the checks of an import.
  func setSchema(
    _ schema: DatabaseSchema,
    container: String,
    environment: ContainerEnvironment
  ) async throws {
    try await writer.write { [storage, effects] in
      let stored = try storage.read {
        try $0.schema(container: container, environment: environment)
      }
      var next = schema
      next.numberRoles(after: stored?.schema ?? DatabaseSchema())
      var batch = WriteBatch()
      batch.container = container
      batch.replaceSchema(
        stored,
        by: next,
        container: container,
        environment: environment,
        now: effects.now.wireMilliseconds
      )
      return (batch, ())
    }
  }
}
