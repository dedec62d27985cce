import Foundation
import Hummingbird
import HummingbirdTesting
import StarterServerAPI
import Testing

@Suite("Items over HTTP")
struct ItemTests {
  /// A service with a store of its own, which is removed afterwards.
  private func withService(
    _ body: @Sendable (any TestClientProtocol) async throws -> Void
  ) async throws {
    let folder = FileManager.default.temporaryDirectory
      .appendingPathComponent("StarterServer-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let store = try ItemStore(at: folder.appendingPathComponent("items.sqlite"))
    try await Application(router: ItemRoutes(store).router()).test(.router) { try await body($0) }
  }

  private func send(
    _ client: any TestClientProtocol,
    _ method: HTTPRequest.Method,
    _ path: String,
    _ json: String? = nil
  ) async throws -> TestResponse {
    try await client.execute(
      uri: path,
      method: method,
      headers: [.contentType: "application/json"],
      body: json.map { ByteBuffer(string: $0) }
    )
  }

  private func decode<Body: Decodable>(_ type: Body.Type, _ response: TestResponse) throws -> Body {
    let decoder = JSONDecoder()
    decoder.dateDecodingStrategy = .iso8601
    return try decoder.decode(Body.self, from: Data(response.body.readableBytesView))
  }

  @Test("An item is added, changed, listed and deleted")
  func life() async throws {
    try await withService { client in
      let added = try await send(client, .post, "/items", #"{"title": "Buy milk"}"#)
      #expect(added.status == .created)
      let item = try decode(ItemBody.self, added)
      #expect(item.title == "Buy milk")
      #expect(!item.isDone)
      let path = "/items/\(item.id)"
      let changed = try await send(client, .patch, path, #"{"isDone": true}"#)
      #expect(try decode(ItemBody.self, changed).isDone)
      let listed = try decode([ItemBody].self, try await send(client, .get, "/items"))
      #expect(listed.map(\.id) == [item.id])
      #expect(listed.map(\.isDone) == [true])
      #expect(try await send(client, .delete, path).status == .noContent)
      #expect(try await send(client, .delete, path).status == .notFound)
      let left = try await send(client, .get, "/items")
      #expect(try decode([ItemBody].self, left).isEmpty)
    }
  }

  @Test("A title that the model does not allow is refused, and nothing is kept")
  func validation() async throws {
    try await withService { client in
      #expect(try await send(client, .post, "/items", #"{"title": ""}"#).status == .badRequest)
      let left = try await send(client, .get, "/items")
      #expect(try decode([ItemBody].self, left).isEmpty)
      let missing = "/items/\(UUID())"
      #expect(try await send(client, .patch, missing, #"{"isDone": true}"#).status == .notFound)
    }
  }
}
