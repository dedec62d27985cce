import CloudKitServer
import CloudKitWebServices
import Foundation
import Testing

/// Common parts of schema tests.
enum TestSchema {
  static func text(_ body: String) -> String { "DEFINE SCHEMA \(body)" }

  /// Why a change of a schema is refused; empty if it is not.
  static func refusals(_ body: () async throws -> SchemaDifference) async -> [String] {
    do {
      _ = try await body()
      return []
    } catch let error as DatabaseSchema.Refusal {
      return error.reasons
    } catch {
      return ["\(error)"]
    }
  }
}

extension Person {
  /// The same user in production.
  var inProduction: Person {
    get async throws {
      var person = self
      person.environment = .production
      person.apiToken = try await server.service.createAPIToken(
        container: TestServer.container,
        environment: .production
      )
      return person
    }
  }
}
