/// The package of an app: a model with its classes, a mirrored store, and a test with two devices.
///
/// `Examples/Starter` is what it makes for the name Starter; a test compares the two, and the package's
/// own tests build and run the example.
struct AppTemplate: SwiftPackageTemplate {
  var name: String
  var library: LibraryLocation

  var files: [PackageTemplateFile] {
    let models = "Sources/\(name)Store/\(name).xcdatamodeld"
    return [
      PackageTemplateFile(path: "Package.swift", text: manifest),
      PackageTemplateFile(path: ".gitignore", text: ignored),
      PackageTemplateFile(path: "README.md", text: readme),
      PackageTemplateFile(path: "\(models)/.xccurrentversion", text: currentVersion),
      PackageTemplateFile(path: "\(models)/\(name).xcdatamodel/contents", text: model),
      PackageTemplateFile(path: "Sources/\(name)Store/ItemStore.swift", text: store),
      PackageTemplateFile(path: "Sources/\(name)/\(name).swift", text: program),
      PackageTemplateFile(path: "Tests/\(name)Tests/SyncTests.swift", text: tests),
    ]
  }

  private var manifest: String {
    #"""
    // swift-tools-version: 6.2
    import PackageDescription

    let package = Package(
      name: "\#(name)",
      dependencies: [
        \#(library.dependency)
      ],
      targets: [
        // The model with its classes, and the store.
        .target(
          name: "\#(name)Store",
          dependencies: [
            .product(name: "CloudKit", package: "watershed"),
            .product(name: "CoreData", package: "watershed"),
          ],
          plugins: [.plugin(name: "CoreDataModels", package: "watershed")]
        ),
        .executableTarget(name: "\#(name)", dependencies: ["\#(name)Store"]),
        .testTarget(
          name: "\#(name)Tests",
          dependencies: ["\#(name)Store", .product(name: "CloudKitTesting", package: "watershed")]
        ),
      ]
    )

    """#
  }

  // swift-format-ignore
  private var readme: String {
    #"""
    # \#(name)

    Items that are kept on each device and mirrored between them: Core Data and CloudKit, with a server of your own.

    ```
    swift test    # two devices sync through a service in the process
    ```

    Two devices, with a server that is gone afterwards. In one terminal:

    ```
    watershed exec -- sh
    export -p | grep WATERSHED_
    swift run \#(name) phone.sqlite
    ```

    In another one, in this folder, paste the lines that the second command printed, which name the server. Then:

    ```
    swift run \#(name) laptop.sqlite
    ```

    A line that is typed on one device appears on the other. Without a server the items stay on the device.

    | To change | Look in |
    |---|---|
    | the entities | `Sources/\#(name)Store/\#(name).xcdatamodeld`; their classes are written at each build |
    | what is done with them | `Sources/\#(name)Store/ItemStore.swift` |
    | the program | `Sources/\#(name)/\#(name).swift` |
    | what is tested | `Tests/\#(name)Tests/SyncTests.swift` |

    `watershed serve` runs a server that stays. Its banner prints the address and the tokens, which `CKContainer` reads from
    the same variables. Where `watershed` is not installed, `swift run --package-path FOLDER watershed`, with the folder of its
    checkout, stands for it.

    """#
  }

  // Its lines are as long as Xcode writes them.
  // swift-format-ignore
  // Its lines are as long as Xcode writes them.
  // swift-format-ignore
  private var model: String {
    #"""
    <?xml version="1.0" encoding="UTF-8" standalone="yes"?>
    <model type="com.apple.IDECoreDataModeler.DataModel" documentVersion="1.0" lastSavedToolsVersion="22522" systemVersion="23C71" minimumToolsVersion="Automatic" sourceLanguage="Swift" usedWithCloudKit="YES" userDefinedModelVersionIdentifier="">
        <entity name="Item" representedClassName="Item" syncable="YES" codeGenerationType="class">
            <attribute name="created" optional="YES" attributeType="Date" usesScalarValueType="NO"/>
            <attribute name="isDone" attributeType="Boolean" defaultValueString="NO" usesScalarValueType="YES"/>
            <attribute name="title" optional="YES" attributeType="String"/>
        </entity>
    </model>

    """#
  }

  // swift-format-ignore
  private var store: String {
    #"""
    import CloudKit
    import CoreData
    import Foundation

    /// The items of one device, mirrored with a server where one is configured.
    public struct ItemStore: Sendable {
      /// The model; every container of a process uses the same one, which its classes belong to.
      public static let model: NSManagedObjectModel = {
        guard let url = Bundle.module.url(forResource: "\#(name)", withExtension: "momd"),
          let model = NSManagedObjectModel(contentsOf: url)
        else { fatalError("The model is not among the resources of \#(name)Store.") }
        return model
      }()

      /// The container of the store.
      public let container: NSPersistentCloudKitContainer

      /// Opens the store of a file, or creates it.
      ///
      /// - Parameters:
      ///   - url: The file.
      ///   - containerIdentifier: The CloudKit container to mirror with; nil keeps the items here.
      /// - Throws: An error of the store that cannot be opened.
      public init(at url: URL, containerIdentifier: String?) throws {
        let options = containerIdentifier.map {
          NSPersistentCloudKitContainerOptions(containerIdentifier: $0)
        }
        try self.init(at: url, options: options)
      }

      /// Opens the store of a file, or creates it, with options for its mirroring: those of a test's device.
      public init(at url: URL, options: NSPersistentCloudKitContainerOptions?) throws {
        let container = NSPersistentCloudKitContainer(name: "\#(name)", managedObjectModel: Self.model)
        let description = NSPersistentStoreDescription(url: url)
        description.cloudKitContainerOptions = options
        container.persistentStoreDescriptions = [description]
        var failure: (any Error)?
        container.loadPersistentStores { _, error in failure = failure ?? error }
        if let failure { throw failure }
        self.container = container
      }

      /// Adds an item.
      public func add(_ title: String) throws {
        let context = container.newBackgroundContext()
        try context.performAndWait {
          let item = Item(context: context)
          item.title = title
          item.created = Date()
          try context.save()
        }
      }

      /// The titles of all items, oldest first.
      public func titles() throws -> [String] {
        let context = container.newBackgroundContext()
        return try context.performAndWait {
          let request: NSFetchRequest<Item> = Item.fetchRequest()
          request.sortDescriptors = [
            NSSortDescriptor(key: "created", ascending: true),
            NSSortDescriptor(key: "title", ascending: true),
          ]
          return try context.fetch(request).map { $0.title ?? "" }
        }
      }

      /// Calls a function after each save and each import, on a thread that nothing waits for.
      ///
      /// - Returns: The observer; `removeObserver(_:)` of the notification center ends the calls.
      public func onChange(_ body: @escaping @Sendable () -> Void) -> any NSObjectProtocol {
        NotificationCenter.default.addObserver(
          forName: .NSPersistentStoreRemoteChange,
          object: container.persistentStoreCoordinator,
          queue: nil
        ) { _ in body() }
      }
    }

    """#
  }

  // swift-format-ignore
  private var program: String {
    #"""
    import Foundation
    import \#(name)Store

    /// A device: lines that are typed become items, and items of other devices appear as they arrive.
    @main
    enum \#(name) {
      static func main() throws {
        let path = CommandLine.arguments.dropFirst().first ?? "\#(name).sqlite"
        // CKContainer reads the server's address and its tokens from variables of the same beginning.
        let server = ProcessInfo.processInfo.environment["WATERSHED_CLOUDKIT_CONTAINER"]
        let store = try ItemStore(at: URL(fileURLWithPath: path), containerIdentifier: server)
        print(server.map { "Mirrored with \($0)." } ?? "No server is configured: items stay here.")
        show(store)
        let observation = store.onChange { show(store) }
        while let line = readLine() {
          if !line.isEmpty { try store.add(line) }
        }
        NotificationCenter.default.removeObserver(observation)
      }

      private static func show(_ store: ItemStore) {
        do {
          print("Items: " + (try store.titles().joined(separator: ", ")))
        } catch {
          print("The items cannot be read: \(error)")
        }
      }
    }

    """#
  }

  private var tests: String {
    #"""
    import CloudKitTesting
    import Foundation
    import \#(name)Store
    import Testing

    @Suite("Items on two devices")
    struct SyncTests {
      @Test("An item that is added on one device is on the other after a sync")
      func twoDevices() async throws {
        let folder = FileManager.default.temporaryDirectory
          .appendingPathComponent("\#(name)-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        // The service and both devices are in this process: no server, no sockets.
        let cloud = try await TestCloud()
        func makeDevice(_ name: String) async throws -> (TestDevice, ItemStore) {
          let device = try await TestDevice(name: name, folder: folder, cloud: cloud)
          // The app's own store, on the device's connection.
          let store = try ItemStore(at: device.storeURL, options: device.cloudKitContainerOptions)
          try device.adopt(store.container)
          return (device, store)
        }
        let (phone, phoneItems) = try await makeDevice("phone")
        let (laptop, laptopItems) = try await makeDevice("laptop")

        try phoneItems.add("Buy milk")
        try await phone.sync()
        try await laptop.sync()
        #expect(try laptopItems.titles() == ["Buy milk"])

        for device in [phone, laptop] { try await device.quit() }
        await cloud.shutdown()
      }

      @Test("Items of a store without a server are there when it is opened again")
      func alone() throws {
        let url = FileManager.default.temporaryDirectory
          .appendingPathComponent("\#(name)-\(UUID().uuidString).sqlite")
        defer {
          for suffix in ["", "-wal", "-shm"] {
            try? FileManager.default.removeItem(atPath: url.path + suffix)
          }
        }
        try ItemStore(at: url, containerIdentifier: nil).add("Buy milk")
        #expect(try ItemStore(at: url, containerIdentifier: nil).titles() == ["Buy milk"])
      }
    }

    """#
  }
}
