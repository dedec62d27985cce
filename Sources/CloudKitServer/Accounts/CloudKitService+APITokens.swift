import CloudKitWebServices
import Foundation

/// The API tokens that a server is started with.
extension CloudKitService {
  /// The first API token that opens the container in the environment; made at the first start.
  ///
  /// In development it opens every container, so that a second app needs no second token. The
  /// container is there from then on.
  package func apiToken(
    opening container: String,
    environment: ContainerEnvironment
  ) async throws -> String {
    let known = try storage.read { try $0.apiTokens() }.first {
      $0.environment == environment && ($0.container == nil || $0.container == container)
        && $0.allowedOrigins.isEmpty && $0.redirectURL == nil
    }
    if let known {
      try await write {
        var batch = WriteBatch()
        batch.container = container
        return (batch, ())
      }
      return known.token
    }
    let token = StoredAPIToken(
      token: effects.randomness.bytes(32).hexadecimal,
      container: environment == .development ? nil : container,
      environment: environment,
      allowedOrigins: [],
      redirectURL: nil
    )
    return try await write {
      var batch = WriteBatch()
      batch.apiTokens = [token]
      batch.container = container
      return (batch, token.token)
    }
  }
}
