import CloudKitMirroring
import CloudKitTesting
import CloudKitWebServices
import CoreData
import Foundation
import Testing

@Suite("Examples: testing with a cloud")
struct TestingExamples {
  @Test("A post that is saved on one device is on the other after a sync")
  func twoDevices() async throws {
    try await Blog.withFolder { folder in
      let model = Blog.model
      // example: TestCloud
      let cloud = try await TestCloud()
      let phone = try await TestDevice(name: "phone", model: model, folder: folder, cloud: cloud)
      let laptop = try await TestDevice(name: "laptop", model: model, folder: folder, cloud: cloud)
      try phone.launch()
      try laptop.launch()

      try phone.save { context in
        let post = Post(context: context)
        post.title = "Hello"
      }
      try await phone.sync()
      try await laptop.sync()
      let titles = try laptop.save { context in
        try context.fetch(NSFetchRequest<Post>(entityName: "Post")).map(\.title)
      }
      #expect(titles == ["Hello"])
      // end

      // example: TestDevice
      try await phone.quit()  // the app ends; its store stays
      try phone.launch()
      try await phone.sync()
      // end
      #expect(try count(phone) == 1)

      // example: FaultPlan
      // The server executes the export, and its reply is lost: the next sync must not repeat it.
      phone.faults.add(.loseReply, to: "records/modify")
      try phone.save { context in
        let post = Post(context: context)
        post.title = "Once"
      }
      try? await phone.sync()
      try await phone.sync()
      try await laptop.sync()
      // end
      #expect(try count(laptop) == 2)

      // example: Working offline
      laptop.faults.isOnline = false
      try laptop.save { context in
        let post = Post(context: context)
        post.title = "Written on a train"
      }
      laptop.faults.isOnline = true
      try await laptop.sync()
      try await phone.sync()
      // end
      #expect(try count(phone) == 3)

      for device in [phone, laptop] { try await device.quit() }
      await cloud.shutdown()
    }
  }

  /// The store of an app, as it has its own.
  private final class Library {
    let container: NSPersistentCloudKitContainer

    init(at url: URL, options: NSPersistentCloudKitContainerOptions) throws {
      container = NSPersistentCloudKitContainer(name: "Blog", managedObjectModel: Blog.model)
      let description = NSPersistentStoreDescription(url: url)
      description.cloudKitContainerOptions = options
      container.persistentStoreDescriptions = [description]
      var failure: (any Error)?
      container.loadPersistentStores { _, error in failure = failure ?? error }
      if let failure { throw failure }
    }

    func add(_ title: String) throws {
      let context = container.newBackgroundContext()
      try context.performAndWait { try context.addPosts(title) }
    }
  }

  @Test("The app's own store syncs on a device")
  func ownStack() async throws {
    try await Blog.withFolder { folder in
      let cloud = try await TestCloud()
      // example: The app's own stack
      let phone = try await TestDevice(name: "phone", folder: folder, cloud: cloud)
      let library = try Library(at: phone.storeURL, options: phone.cloudKitContainerOptions)
      try phone.adopt(library.container)
      try library.add("Hello")
      try await phone.sync()
      // end
      let laptop = try await TestDevice(
        name: "laptop",
        model: Blog.model,
        folder: folder,
        cloud: cloud
      )
      try laptop.launch()
      try await laptop.sync()
      #expect(try count(laptop) == 1)
      for device in [phone, laptop] { try await device.quit() }
      await cloud.shutdown()
    }
  }

  @Test("A device in production shows what a promoted schema lacks")
  func productionSchema() async throws {
    try await Blog.withFolder { folder in
      let model = Blog.model
      let schema = cloudKitSchema(for: model, configuration: nil).ckdb
      let cloud = try await TestCloud()
      // example: The production schema
      try await cloud.importSchema(schema)
      try await cloud.promoteSchema()
      func makeDevice(_ name: String) async throws -> TestDevice {
        let device = try await TestDevice(
          name: name,
          model: model,
          folder: folder,
          cloud: cloud,
          environment: .production
        )
        try device.launch()
        return device
      }
      let phone = try await makeDevice("phone")
      let laptop = try await makeDevice("laptop")
      try phone.save { context in
        let post = Post(context: context)
        post.title = "Hello"
      }
      try await phone.sync()  // a record that the schema refuses stays on the phone
      try await laptop.sync()
      let posts = NSFetchRequest<Post>(entityName: "Post")
      #expect(try laptop.save { try $0.count(for: posts) } == 1)
      // end
      for device in [phone, laptop] { try await device.quit() }
      await cloud.shutdown()
    }
  }

  private func count(_ device: TestDevice) throws -> Int {
    try device.save { try $0.count(for: NSFetchRequest<Post>(entityName: "Post")) }
  }

  @Test("Edits of different properties on two devices are both kept")
  func conflict() async throws {
    try await Blog.withFolder { folder in
      let model = Blog.model
      let cloud = try await TestCloud()
      let phone = try await TestDevice(name: "phone", model: model, folder: folder, cloud: cloud)
      let laptop = try await TestDevice(name: "laptop", model: model, folder: folder, cloud: cloud)
      try phone.launch()
      try laptop.launch()
      try phone.save { try $0.addPosts("Hello") }
      try await phone.sync()
      try await laptop.sync()
      // example: Edits on two devices
      let post = NSFetchRequest<Post>(entityName: "Post")
      try phone.save { try $0.fetch(post).first?.title = "Hello, world" }
      try laptop.save { try $0.fetch(post).first?.rating = 5 }
      try await phone.sync()
      try await laptop.sync()  // its export meets the newer record, and merges
      try await phone.sync()
      let merged = try phone.save { try $0.fetch(post).map { "\($0.title ?? "") \($0.rating)" } }
      #expect(merged == ["Hello, world 5"])
      // end
      for device in [phone, laptop] { try await device.quit() }
      await cloud.shutdown()
    }
  }
}
