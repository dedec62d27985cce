/// The package of a service: a model with its classes, a store, and routes over HTTP with a test.
///
/// `Examples/StarterServer` is what it makes for the name StarterServer; a test compares the two, and the
/// package's own tests build and run the example.
struct ServerTemplate: SwiftPackageTemplate {
  var name: String
  var library: LibraryLocation

  var files: [PackageTemplateFile] {
    let sources = "Sources/\(name)API"
    let models = "\(sources)/\(name).xcdatamodeld"
    return [
      PackageTemplateFile(path: "Package.swift", text: manifest),
      PackageTemplateFile(path: ".gitignore", text: ignored),
      PackageTemplateFile(path: "README.md", text: readme),
      PackageTemplateFile(path: "\(models)/.xccurrentversion", text: currentVersion),
      PackageTemplateFile(path: "\(models)/\(name).xcdatamodel/contents", text: model),
      PackageTemplateFile(path: "\(sources)/ItemStore.swift", text: store),
      PackageTemplateFile(path: "\(sources)/ItemRoutes.swift", text: routes),
      PackageTemplateFile(path: "Sources/\(name)/\(name).swift", text: program),
      PackageTemplateFile(path: "Tests/\(name)Tests/ItemTests.swift", text: tests),
    ]
  }

  private var manifest: String {
    #"""
    // swift-tools-version: 6.2
    import PackageDescription

    let package = Package(
      name: "\#(name)",
      dependencies: [
        \#(library.dependency),
        .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1"),
      ],
      targets: [
        // The model with its classes, the store, and the routes.
        .target(
          name: "\#(name)API",
          dependencies: [
            .product(name: "CoreData", package: "watershed"),
            .product(name: "Hummingbird", package: "hummingbird"),
          ],
          plugins: [.plugin(name: "CoreDataModels", package: "watershed")]
        ),
        .executableTarget(name: "\#(name)", dependencies: ["\#(name)API"]),
        .testTarget(
          name: "\#(name)Tests",
          dependencies: [
            "\#(name)API", .product(name: "HummingbirdTesting", package: "hummingbird"),
          ]
        ),
      ]
    )

    """#
  }

  // swift-format-ignore
  private var readme: String {
    #"""
    # \#(name)

    A small service over Core Data: items in a SQLite store, as JSON over HTTP by Hummingbird.

    ```
    swift test
    swift run \#(name) items.sqlite
    ```

    In another terminal:

    ```
    curl -X POST localhost:8081/items -d '{"title": "Buy milk"}' -H 'Content-Type: application/json'
    curl localhost:8081/items
    curl -X PATCH localhost:8081/items/ID -d '{"isDone": true}' -H 'Content-Type: application/json'
    curl -X DELETE localhost:8081/items/ID
    ```

    | To change | Look in |
    |---|---|
    | the entities | `Sources/\#(name)API/\#(name).xcdatamodeld`; their classes are written at each build |
    | what is done with them | `Sources/\#(name)API/ItemStore.swift` |
    | the routes | `Sources/\#(name)API/ItemRoutes.swift` |
    | address and port | `Sources/\#(name)/\#(name).swift`, and the variable `PORT` |
    | what is tested | `Tests/\#(name)Tests/ItemTests.swift` |

    The service listens on this machine alone. Before it listens to others, give it callers with rights, and TLS.

    """#
  }

  // Its lines are as long as Xcode writes them.
  // swift-format-ignore
  // Its lines are as long as Xcode writes them.
  // swift-format-ignore
  private var model: String {
    #"""
    <?xml version="1.0" encoding="UTF-8" standalone="yes"?>
    <model type="com.apple.IDECoreDataModeler.DataModel" documentVersion="1.0" lastSavedToolsVersion="22522" systemVersion="23C71" minimumToolsVersion="Automatic" sourceLanguage="Swift" userDefinedModelVersionIdentifier="">
        <entity name="Item" representedClassName="Item" syncable="YES" codeGenerationType="class">
            <attribute name="created" attributeType="Date" usesScalarValueType="NO"/>
            <attribute name="id" attributeType="UUID" usesScalarValueType="NO"/>
            <attribute name="isDone" attributeType="Boolean" defaultValueString="NO" usesScalarValueType="YES"/>
            <attribute name="title" attributeType="String" minValueString="1" maxValueString="200"/>
            <fetchIndex name="byID">
                <fetchIndexElement property="id" type="Binary" order="ascending"/>
            </fetchIndex>
            <uniquenessConstraints>
                <uniquenessConstraint>
                    <constraint value="id"/>
                </uniquenessConstraint>
            </uniquenessConstraints>
        </entity>
    </model>

    """#
  }

  // swift-format-ignore
  private var store: String {
    #"""
    import CoreData
    import Foundation

    /// An item as clients see it.
    public struct ItemBody: Codable, Hashable, Sendable {
      /// What the item's path ends with.
      public var id: UUID
      /// What is to be done.
      public var title: String
      /// Whether it is done.
      public var isDone: Bool
      /// When it was added.
      public var created: Date
    }

    /// What a client changes of an item; nil leaves it as it is.
    public struct ItemChange: Codable, Hashable, Sendable {
      /// The new title.
      public var title: String?
      /// Whether it is done.
      public var isDone: Bool?
    }

    /// The items of a store.
    ///
    /// Each call has a context of its own, so calls may run at the same time.
    public struct ItemStore: Sendable {
      /// The model; every container of a process uses the same one, which its classes belong to.
      public static let model: NSManagedObjectModel = {
        guard let url = Bundle.module.url(forResource: "\#(name)", withExtension: "momd"),
          let model = NSManagedObjectModel(contentsOf: url)
        else { fatalError("The model is not among the resources of \#(name)API.") }
        return model
      }()

      private let container: NSPersistentContainer

      /// Opens the store of a file, or makes it.
      ///
      /// - Throws: An error of the store that cannot be opened.
      public init(at url: URL) throws {
        let container = NSPersistentContainer(name: "\#(name)", managedObjectModel: Self.model)
        container.persistentStoreDescriptions = [NSPersistentStoreDescription(url: url)]
        var failure: (any Error)?
        container.loadPersistentStores { _, error in failure = failure ?? error }
        if let failure { throw failure }
        self.container = container
      }

      /// All items, oldest first.
      public func items() async throws -> [ItemBody] {
        try await container.performBackgroundTask { context in
          let request: NSFetchRequest<Item> = Item.fetchRequest()
          request.sortDescriptors = [
            NSSortDescriptor(key: "created", ascending: true),
            NSSortDescriptor(key: "title", ascending: true),
          ]
          return try context.fetch(request).compactMap(Self.body)
        }
      }

      /// Adds an item.
      ///
      /// - Throws: A validation error for a title that the model does not allow.
      public func add(_ title: String) async throws -> ItemBody? {
        try await container.performBackgroundTask { context in
          let item = Item(context: context)
          item.id = UUID()
          item.title = title
          item.created = Date()
          try context.save()
          return Self.body(item)
        }
      }

      /// Changes an item.
      ///
      /// - Returns: The item afterwards; nil if there is none.
      /// - Throws: A validation error for a title that the model does not allow.
      public func change(_ id: UUID, _ change: ItemChange) async throws -> ItemBody? {
        try await container.performBackgroundTask { context in
          guard let item = try Self.item(id, in: context) else { return nil }
          if let title = change.title { item.title = title }
          if let isDone = change.isDone { item.isDone = isDone }
          try context.save()
          return Self.body(item)
        }
      }

      /// Deletes an item.
      ///
      /// - Returns: Whether there was one.
      public func delete(_ id: UUID) async throws -> Bool {
        try await container.performBackgroundTask { context in
          guard let item = try Self.item(id, in: context) else { return false }
          context.delete(item)
          try context.save()
          return true
        }
      }

      private static func item(_ id: UUID, in context: NSManagedObjectContext) throws -> Item? {
        let request: NSFetchRequest<Item> = Item.fetchRequest()
        request.predicate = NSPredicate(format: "id == %@", id)
        request.fetchLimit = 1
        return try context.fetch(request).first
      }

      private static func body(_ item: Item) -> ItemBody? {
        guard let id = item.id, let title = item.title, let created = item.created else { return nil }
        return ItemBody(id: id, title: title, isDone: item.isDone, created: created)
      }
    }

    """#
  }

  // swift-format-ignore
  private var routes: String {
    #"""
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

    """#
  }

  // swift-format-ignore
  private var program: String {
    #"""
    import Foundation
    import Hummingbird
    import \#(name)API

    /// The service, on this machine's port 8081 or that of the variable PORT.
    @main
    enum \#(name) {
      static func main() async throws {
        let path = CommandLine.arguments.dropFirst().first ?? "\#(name).sqlite"
        let port = ProcessInfo.processInfo.environment["PORT"].flatMap(Int.init) ?? 8081
        let store = try ItemStore(at: URL(fileURLWithPath: path))
        let application = Application(
          router: ItemRoutes(store).router(),
          configuration: ApplicationConfiguration(address: .hostname("127.0.0.1", port: port))
        )
        try await application.runService()
      }
    }

    """#
  }

  // swift-format-ignore
  private var tests: String {
    #"""
    import Foundation
    import Hummingbird
    import HummingbirdTesting
    import \#(name)API
    import Testing

    @Suite("Items over HTTP")
    struct ItemTests {
      /// A service with a store of its own, which is removed afterwards.
      private func withService(
        _ body: @Sendable (any TestClientProtocol) async throws -> Void
      ) async throws {
        let folder = FileManager.default.temporaryDirectory
          .appendingPathComponent("\#(name)-\(UUID().uuidString)")
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

    """#
  }
}
