import CoreData
import Foundation
import Hummingbird

extension ItemBody: ResponseEncodable {}

/// The routes of the service.
public struct ItemRoutes: Sendable {
  private let store: ItemStore

  /// Makes the routes to a store.
  public init(_ store: ItemStore) { self.store = store }

  /// The router of the service.
  public func router() -> Router<BasicRequestContext> {
    let router = Router()
    router.get("items") { _, _ in try await store.items() }
    router.post("items") { request, context in
      let change = try await request.decode(as: ItemChange.self, context: context)
      let added = try await valid { try await store.add(change.title ?? "") }
      return EditedResponse(status: .created, response: added)
    }
    router.patch("items/:id") { request, context in
      let id = try id(context)
      let change = try await request.decode(as: ItemChange.self, context: context)
      guard let item = try await valid({ try await store.change(id, change) }) else {
        throw HTTPError(.notFound)
      }
      return item
    }
    router.delete("items/:id") { _, context -> HTTPResponse.Status in
      guard try await store.delete(try id(context)) else { throw HTTPError(.notFound) }
      return .noContent
    }
    return router
  }

  private func id(_ context: BasicRequestContext) throws -> UUID {
    guard let id = UUID(uuidString: try context.parameters.require("id")) else {
      throw HTTPError(.notFound)
    }
    return id
  }

  /// Runs a change; a value that the model does not allow is the client's error.
  private func valid<Value: Sendable>(
    _ change: () async throws -> Value
  ) async throws -> Value {
    do {
      return try await change()
    } catch let error as CocoaError where error.isValidationError {
      throw HTTPError(.badRequest, message: error.localizedDescription)
    }
  }
}
