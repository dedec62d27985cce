import CloudKitMirroring
import CloudKitTesting
import CloudKitWebServices
import Effects
import Foundation
import OpenCloudKit
import OpenCoreData
import Synchronization
import Testing

/// An app's own containers on devices of the test kit.
@Suite("Adopted stacks")
struct AdoptedStackTests {
  /// The container of an app, which is a subclass.
  private final class AppContainer: NSPersistentCloudKitContainer, @unchecked Sendable {
    // Sendable: it adds no state.
  }

  /// A stack as an app has it: a mirrored store, and one that stays on the device.
  private struct Stack {
    let container = AppContainer(name: "App", managedObjectModel: model)

    private static let model: NSManagedObjectModel = {
      let model = BlogModel.make()
      model.setEntities(model.entities, forConfigurationName: "Cloud")
      let draft = BlogModel.entity("Draft", [BlogModel.attribute("text", .stringAttributeType)])
      model.entities.append(draft)
      model.setEntities([draft], forConfigurationName: "Local")
      return model
    }()

    init(at url: URL, _ options: NSPersistentCloudKitContainerOptions) {
      let cloud = NSPersistentStoreDescription(url: url)
      cloud.configuration = "Cloud"
      cloud.cloudKitContainerOptions = options
      let local = NSPersistentStoreDescription(url: url.appendingPathExtension("local"))
      local.configuration = "Local"
      container.persistentStoreDescriptions = [cloud, local]
    }

    func load() throws {
      var failure: (any Error)?
      container.loadPersistentStores { _, error in failure = failure ?? error }
      if let failure { throw failure }
      container.viewContext.automaticallyMergesChangesFromParent = true
    }
  }

  private func withFolder(_ body: (URL) async throws -> Void) async throws {
    let folder = FileManager.default.temporaryDirectory
      .appendingPathComponent("adopted-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    try await body(folder)
  }

  private func titles(_ device: TestDevice) throws -> [String] {
    try device.save { try $0.all("Post").compactMap { $0.value(forKey: "title") as? String } }
  }

  @Test("A container that the app has loaded, and one that it loads afterwards, sync on devices")
  func synced() async throws {
    try await withFolder { folder in
      let cloud = try await TestCloud()
      let phone = try await TestDevice(name: "phone", folder: folder, cloud: cloud)
      let pad = try await TestDevice(name: "pad", folder: folder, cloud: cloud)
      func launchPhone() throws -> Stack {
        let stack = Stack(at: phone.storeURL, phone.cloudKitContainerOptions)
        try stack.load()
        try phone.adopt(stack.container)
        return stack
      }
      let first = try launchPhone()
      // The app's code has no parameter: the options have the identifier alone.
      let identifier = TestCloud.defaultContainer
      let other = Stack(at: pad.storeURL, .init(containerIdentifier: identifier))
      try pad.adopt(other.container)
      try other.load()
      try phone.save { context in
        _ = context.make("Post", ["title": "a"])
        _ = context.make("Draft", ["text": "stays"])
      }
      try await phone.sync()
      try await other.container.sync()
      #expect(try titles(pad) == ["a"])
      #expect(try pad.save { try $0.all("Draft").isEmpty })
      // The app ends, and is launched again.
      try await phone.quit()
      let second = try launchPhone()
      #expect(first.container !== second.container && phone.container === second.container)
      try pad.save { _ = $0.make("Post", ["title": "b"]) }
      try await pad.sync()
      try await phone.sync()
      #expect(try titles(phone).sorted() == ["a", "b"])
      for device in [phone, pad] { try await device.quit() }
      await cloud.shutdown()
    }
  }

  @Test("A container that is mirrored elsewhere, or nowhere, is refused with what to do")
  func refused() async throws {
    try await withFolder { folder in
      let cloud = try await TestCloud()
      let phone = try await TestDevice(name: "phone", folder: folder, cloud: cloud)
      let pad = try await TestDevice(name: "pad", folder: folder, cloud: cloud)
      func refusal(_ body: () throws -> Void) -> String {
        #expect(throws: TestDevice.StackError.self, performing: body)?.description ?? ""
      }
      #expect(refusal { try phone.launch() }.contains("without a model"))
      let others = Stack(at: phone.storeURL, pad.cloudKitContainerOptions)
      try others.load()
      #expect(refusal { try phone.adopt(others.container) }.contains("mirrored elsewhere"))
      try pad.adopt(others.container)
      let second = Stack(at: phone.storeURL, .init(containerIdentifier: "iCloud.other"))
      #expect(refusal { try phone.adopt(second.container) }.contains("iCloud.other"))
      second.container.persistentStoreDescriptions[0].cloudKitContainerOptions = nil
      #expect(refusal { try phone.adopt(second.container) }.contains("No store"))
      let third = Stack(at: phone.storeURL, .init(containerIdentifier: TestCloud.defaultContainer))
      #expect(refusal { try pad.adopt(third.container) }.contains("Another container runs"))
      // What is refused keeps its options.
      let options = third.container.persistentStoreDescriptions[0].cloudKitContainerOptions
      #expect(options != nil && options?.container == nil)
      try await pad.quit()
      await cloud.shutdown()
    }
  }

  @Test("A container whose mirrored store did not load does not sync without an error")
  func unloaded() async throws {
    try await withFolder { folder in
      let cloud = try await TestCloud()
      let phone = try await TestDevice(name: "phone", folder: folder, cloud: cloud)
      let model = BlogModel.make()
      // CloudKit needs attributes that are optional or have a default.
      let title = BlogModel.attribute("needed", .stringAttributeType)
      title.isOptional = false
      try #require(model.entitiesByName["Post"]).properties.append(title)
      let container = AppContainer(name: "App", managedObjectModel: model)
      let description = NSPersistentStoreDescription(url: phone.storeURL)
      description.cloudKitContainerOptions = .init(containerIdentifier: TestCloud.defaultContainer)
      container.persistentStoreDescriptions = [description]
      try phone.adopt(container)
      var failure: (any Error)?
      container.loadPersistentStores { _, error in failure = error }
      #expect(failure != nil)
      let errors = [
        await #expect(throws: TestDevice.StackError.self) { try await phone.sync() },
        await #expect(throws: TestDevice.StackError.self) { try await container.sync() },
      ]
      for error in errors {
        #expect(error?.description.contains("No store of the container App is mirrored") == true)
      }
      try await phone.quit()
      await cloud.shutdown()
    }
  }

  @Test("A launch beside a container that runs is refused, until it has ended")
  func launchedBeside() async throws {
    try await withFolder { folder in
      let cloud = try await TestCloud()
      let phone = try await TestDevice(
        name: "phone",
        model: BlogModel.make(),
        folder: folder,
        cloud: cloud
      )
      let stack = Stack(at: phone.storeURL, phone.cloudKitContainerOptions)
      try stack.load()
      try phone.adopt(stack.container)
      let error = #expect(throws: TestDevice.StackError.self) { try phone.launch() }
      #expect(error?.description.contains("Another container runs") == true)
      #expect(phone.container === stack.container)
      try await phone.quit()
      await cloud.shutdown()
    }
  }

  @Test("Devices of one person can be made at the same time")
  func sameTime() async throws {
    let cloud = try await TestCloud()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<8 {
        group.addTask { _ = try await cloud.container(for: "bea", device: "\(number)") }
      }
      try await group.waitForAll()
    }
    await cloud.shutdown()
  }

  @Test("Production takes what was promoted, and nothing else", arguments: [true, false])
  func promoted(isPromoted: Bool) async throws {
    try await withFolder { folder in
      let model = BlogModel.make()
      let cloud = try await TestCloud()
      try await cloud.importSchema(cloudKitSchema(for: model, configuration: nil).ckdb)
      if isPromoted { try await cloud.promoteSchema() }
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
      let (phone, pad) = (try await makeDevice("phone"), try await makeDevice("pad"))
      try phone.save { _ = $0.make("Post", ["title": "a"]) }
      // A refused record is no failure of the sync: it stays on the device.
      try await phone.sync()
      try await pad.sync()
      #expect(try titles(pad) == (isPromoted ? ["a"] : []))
      await #expect(throws: (any Error).self) { try await cloud.importSchema("DEFINE NOTHING") }
      for device in [phone, pad] { try await device.quit() }
      await cloud.shutdown()
    }
  }

  /// A clock whose every sleep ends at once, after a body has run.
  private struct RunningClock: EffectClock {
    var now = Date(timeIntervalSinceReferenceDate: 0)
    var uptime = 0.0
    let body: @Sendable () -> Void

    func sleep(seconds: Double) async throws { body() }
  }

  @Test("A delayed request does not reach the server if the device is offline by then")
  func delayedOffline() async throws {
    let faults = FaultPlan()
    let arrived = Mutex(0)
    var effects = Effects.live
    effects.clock = RunningClock { faults.isOnline = false }
    let transport = FaultyTransport(
      InProcessTransport { _ in
        arrived.withLock { $0 += 1 }
        return WebServiceResponse(status: 200, headers: [:], body: Data())
      },
      faults: faults,
      effects: effects
    )
    faults.add(.delay(seconds: 5), to: "records/modify")
    let error = await #expect(throws: TransportError.self) {
      _ = try await transport.send(WebServiceRequest(method: "POST", path: "/records/modify"))
    }
    #expect(error?.wasSent == false)
    #expect(arrived.withLock { $0 } == 0)
  }
}
