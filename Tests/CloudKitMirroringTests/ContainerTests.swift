import CloudKitMirroring
import CloudKitTesting
import CloudKitWebServices
import Foundation
import OpenCloudKit
import OpenCoreData
import Synchronization
import Testing

@Suite struct ContainerTests {
  private func description(_ url: URL, _ cloud: CKContainer?) -> NSPersistentStoreDescription {
    let description = NSPersistentStoreDescription(url: url)
    description.cloudKitContainerOptions = cloud.map(NSPersistentCloudKitContainerOptions.init)
    return description
  }

  private func load(_ container: NSPersistentCloudKitContainer) -> [NSError] {
    var errors: [NSError] = []
    container.loadPersistentStores { _, error in
      if let error { errors.append(error as NSError) }
    }
    return errors
  }

  @Test(
    "A model that CloudKit does not support is refused with all reasons, and no file is created"
  )
  func refusedModel() async throws {
    let world = try await World()
    let model = NSManagedObjectModel()
    model.entities = [
      BlogModel.entity(
        "Thing",
        [BlogModel.attribute("name", .stringAttributeType) { $0.isOptional = false }]
      )
    ]
    let url = world.folder.appendingPathComponent("refused.sqlite")
    let container = NSPersistentCloudKitContainer(name: "refused", managedObjectModel: model)
    container.persistentStoreDescriptions = [
      description(url, try await world.cloud.container(device: "d"))
    ]
    let errors = load(container)
    #expect(errors.map(\.code) == [134_060])
    #expect(errors.first?.localizedFailureReason?.contains("Thing: name") == true)
    #expect(!FileManager.default.fileExists(atPath: url.path))
    #expect(container.persistentStoreCoordinator.persistentStores.isEmpty)
  }

  @Test("A store is mirrored once in a process, and a container with one store")
  func twice() async throws {
    let world = try await World()
    let phone = try await world.device("phone")
    let cloud = try await world.cloud.container(device: "second")
    let second = NSPersistentCloudKitContainer(name: "phone", managedObjectModel: world.model)
    second.persistentStoreDescriptions = [description(phone.storeURL, cloud)]
    #expect(load(second).map(\.code) == [134_410])
    let both = NSPersistentCloudKitContainer(name: "both", managedObjectModel: world.model)
    both.persistentStoreDescriptions = ["one", "two"].map {
      description(world.folder.appendingPathComponent("\($0).sqlite"), cloud)
    }
    #expect(load(both).map(\.code) == [134_060])
    #expect(both.persistentStoreCoordinator.persistentStores.count == 1)
    try await both.closeStores()
    try await phone.quit()
  }

  @Test("A store that the app removes is no longer mirrored, and can be loaded again")
  func removedStore() async throws {
    try await World.with("phone", "pad") { world, devices in
      let (phone, pad) = (devices[0], devices[1])
      try phone.save { _ = $0.make("Post", ["title": "first"]) }
      try await phone.sync()
      let container = phone.container
      let coordinator = container.persistentStoreCoordinator
      let mirror = try #require(container.storeMirrors.first)
      for store in coordinator.persistentStores { try coordinator.remove(store) }
      #expect(container.storeMirrors.isEmpty)
      await #expect(throws: (any Error).self) { try await mirror.syncNow() }
      #expect(load(container).isEmpty)
      #expect(container.storeMirrors.count == 1)
      try phone.save { _ = $0.make("Post", ["title": "second"]) }
      try await world.settle(phone, pad)
      #expect(try pad.snapshot() == phone.snapshot())
      #expect(try pad.snapshot().count == 2)
    }
  }

  @Test("A store that the app moves to another place is mirrored there, and sends nothing twice")
  func movedStore() async throws {
    try await World.with("phone", "pad") { world, devices in
      let (phone, pad) = (devices[0], devices[1])
      try phone.save { _ = $0.make("Post", ["title": "first"]) }
      try await world.settle(phone, pad)
      let container = phone.container
      let coordinator = container.persistentStoreCoordinator
      let store = try #require(coordinator.persistentStores.first)
      let place = world.folder.appendingPathComponent("moved.sqlite")
      let moved = try coordinator.migratePersistentStore(store, to: place, type: .sqlite)
      #expect(container.mirror(of: store) == nil)
      #expect(container.mirror(of: moved) != nil)
      try phone.save { _ = $0.make("Post", ["title": "second"]) }
      try await world.settle(phone, pad)
      #expect(try pad.snapshot() == phone.snapshot())
      #expect(try pad.snapshot().count == 2)
    }
  }

  @Test("Without options, only the container's own description is mirrored")
  func defaultDescription() throws {
    let model = BlogModel.make()
    let container = NSPersistentCloudKitContainer(name: "app", managedObjectModel: model)
    let own = try #require(container.persistentStoreDescriptions.first)
    let apps = NSPersistentStoreDescription(url: URL(fileURLWithPath: "/tmp/none.sqlite"))
    container.persistentStoreDescriptions = [apps]
    container.mirrorOwnDescription(with: "iCloud.first")
    #expect(apps.cloudKitContainerOptions == nil)
    container.persistentStoreDescriptions = [apps, own]
    container.mirrorOwnDescription(with: "iCloud.first")
    #expect(apps.cloudKitContainerOptions == nil)
    #expect(own.cloudKitContainerOptions?.containerIdentifier == "iCloud.first")
    own.cloudKitContainerOptions = nil
    container.mirrorOwnDescription(with: "iCloud.first")
    #expect(own.cloudKitContainerOptions == nil)
  }

  @Test("With a local and a cloud configuration in two stores, only the cloud one is mirrored")
  func configurations() async throws {
    let model = BlogModel.make()
    let note = BlogModel.entity("Note", [BlogModel.attribute("text", .stringAttributeType)])
    let cloudEntities = model.entities
    model.entities = cloudEntities + [note]
    model.setEntities([note], forConfigurationName: "Local")
    model.setEntities(cloudEntities, forConfigurationName: "Cloud")
    let world = try await World(model: model)
    let container = NSPersistentCloudKitContainer(name: "app", managedObjectModel: model)
    let local = NSPersistentStoreDescription(
      url: world.folder.appendingPathComponent("local.sqlite")
    )
    local.configuration = "Local"
    let cloud = description(
      world.folder.appendingPathComponent("cloud.sqlite"),
      try await world.cloud.container(device: "app")
    )
    cloud.configuration = "Cloud"
    container.persistentStoreDescriptions = [local, cloud]
    #expect(load(container).isEmpty)
    #expect(container.storeMirrors.count == 1)
    let context = container.newBackgroundContext()
    try context.performAndWait {
      _ = context.make("Note", ["text": "here"])
      _ = context.make("Post", ["title": "there"])
      try context.save()
    }
    try await container.waitUntilSynced()
    let schema = try world.cloud.service.schemas.schema(
      container: TestCloud.defaultContainer,
      environment: .development
    )
    #expect(schema.recordTypes.map(\.name).sorted() == ["CD_Post", "Users"])
    try await container.closeStores()
  }

  @Test("initializeCloudKitSchema creates the model's schema, and leaves no record")
  func schema() async throws {
    try await World.with("phone") { world, devices in
      let phone = devices[0]
      try phone.container.initializeCloudKitSchema(options: [.dryRun])
      try await phone.sync()
      func made() throws -> DatabaseSchema {
        try world.cloud.service.schemas.schema(
          container: TestCloud.defaultContainer,
          environment: .development
        )
      }
      #expect(try made().recordTypes.count == 1)
      try phone.container.initializeCloudKitSchema()
      let expected = cloudKitSchema(for: world.model, configuration: nil)
      #expect(try made().ckdb == expected.ckdb)
      try await phone.sync()
      #expect(try phone.snapshot().isEmpty)
    }
  }

  /// The events that the container of a device posts.
  private final class PostedEvents: @unchecked Sendable {
    // Sendable: the stream synchronizes itself, and the observer is set once.
    typealias Event = NSPersistentCloudKitContainer.Event
    let events: AsyncStream<Event>
    private var observer: (any NSObjectProtocol)?

    init(ofContainerNamed name: String, _ body: @escaping @Sendable () -> Void = {}) {
      let (events, feed) = AsyncStream.makeStream(of: Event.self)
      self.events = events
      observer = NotificationCenter.default.addObserver(
        forName: NSPersistentCloudKitContainer.eventChangedNotification,
        object: nil,
        queue: nil
      ) { note in
        let key = NSPersistentCloudKitContainer.eventNotificationUserInfoKey
        guard let event = note.userInfo?[key] as? Event,
          (note.object as? NSPersistentCloudKitContainer)?.name == name
        else { return }
        body()
        feed.yield(event)
      }
    }

    deinit {
      if let observer { NotificationCenter.default.removeObserver(observer) }
    }
  }

  @Test("An observer of events that blocks its thread delays no sync")
  func blockingObserver() async throws {
    let isSynced = DispatchSemaphore(value: 0)
    let posted = PostedEvents(ofContainerNamed: "blocked") {
      isSynced.wait()
      isSynced.signal()
    }
    let world = try await World()
    let device = try await world.device("blocked")
    try device.save { _ = $0.make("Post", ["title": "p"]) }
    try await device.sync()
    isSynced.signal()
    var iterator = posted.events.makeAsyncIterator()
    #expect(await iterator.next()?.type == .setup)
    try await device.quit()
  }

  @Test("Events are posted at start and end, and can be fetched")
  func events() async throws {
    let posted = PostedEvents(ofContainerNamed: "events")
    let world = try await World()
    let device = try await world.device("events")
    try device.save { _ = $0.make("Post", ["title": "p"]) }
    try await device.sync()
    var iterator = posted.events.makeAsyncIterator()
    let first = try #require(await iterator.next())
    #expect(first.type == .setup)
    #expect(first.endDate == nil)
    var ended: Set<NSPersistentCloudKitContainer.EventType> = []
    while !ended.isSuperset(of: [.import, .export]), let event = await iterator.next() {
      if event.endDate != nil { ended.insert(event.type) }
    }
    #expect(ended == [.setup, .import, .export])
    let context = device.container.newBackgroundContext()
    let request = NSPersistentCloudKitContainerEventRequest.fetchEvents(after: Date.distantPast)
    let result = try context.execute(request) as? NSPersistentCloudKitContainerEventResult
    let events = try #require(result?.result as? [NSPersistentCloudKitContainer.Event])
    #expect(events.first?.type == .setup)
    #expect(events.allSatisfy { $0.succeeded && $0.endDate != nil })
    request.resultType = .countEvents
    let count = try context.execute(request) as? NSPersistentCloudKitContainerEventResult
    #expect((count?.result as? [NSNumber])?.first?.intValue == events.count)
    try await device.quit()
  }

  @Test("Another user's sign-in neither deletes nor reveals data")
  func anotherPerson() async throws {
    let world = try await World()
    let phone = try await world.device("phone")
    try phone.save { _ = $0.make("Post", ["title": "mine"]) }
    try await phone.sync()
    let before = try phone.snapshot()
    try await phone.quit()
    let stranger = try await TestDevice(
      name: "phone",
      model: world.model,
      folder: world.folder,
      cloud: world.cloud,
      person: "eve"
    )
    try stranger.launch()
    do {
      try await stranger.container.syncNow()
      Issue.record("The sync went through.")
    } catch {
      #expect((error as NSError).code == 134_405)
    }
    #expect(try stranger.snapshot() == before)
    #expect(!stranger.faults.requests.contains("records/modify"))
    try await stranger.quit()
  }

  @Test("Unknown record types and entities stay in the cloud and cause no error")
  func unknownRecords() async throws {
    try await World.with("phone") { world, devices in
      let phone = devices[0]
      try await phone.sync()
      let other = try await world.cloud.container(device: "web")
      let zone = CKRecordZone.ID(
        zoneName: "com.apple.coredata.cloudkit.zone",
        ownerName: "__defaultOwner__"
      )
      let podcast = CKRecord(
        recordType: "CD_Podcast",
        recordID: .init(recordName: "a", zoneID: zone)
      )
      podcast["CD_entityName"] = "Podcast"
      let post = CKRecord(recordType: "CD_Post", recordID: .init(recordName: "b", zoneID: zone))
      post["CD_entityName"] = "Post"
      post["CD_title"] = "from the web"
      post["extra"] = "ignored"
      let attachment = CKRecord(
        recordType: "CD_Attachment",
        recordID: .init(recordName: "c", zoneID: zone)
      )
      attachment["CD_post"] = "later"
      _ = try await other.privateCloudDatabase.modifyRecords(
        saving: [podcast, post, attachment],
        deleting: []
      )
      try await phone.sync()
      #expect(try phone.snapshot().keys.sorted() == ["b", "c"])
      let status = try #require(try phone.container.mirroringStatus().first)
      #expect(status.parkedLinkCount >= 1)
      // The link waits for its post.
      let later = CKRecord(
        recordType: "CD_Post",
        recordID: .init(recordName: "later", zoneID: zone)
      )
      _ = try await other.privateCloudDatabase.save(later)
      try await phone.sync()
      #expect(try phone.snapshot()["c"]?["CD_post"] == "string(\"later\")")
    }
  }

  @Test("After a server reports a restored backup, no object is duplicated or deleted")
  func expiredToken() async throws {
    try await World.with("phone", "pad") { world, devices in
      let (phone, pad) = (devices[0], devices[1])
      try phone.save { context in
        let tag = context.make("Tag", ["name": "t"])
        for title in ["a", "b"] {
          context.make("Post", ["title": title]).setValue(NSSet(object: tag), forKey: "tags")
        }
      }
      try await world.settle(phone, pad)
      pad.faults.isOnline = false
      try phone.save { context in try context.delete(context.first("Post", "title", "a")) }
      try await phone.sync()
      try await world.cloud.service.beginNewIncarnation()
      try pad.save { try $0.first("Post", "title", "b").setValue("edited", forKey: "content") }
      pad.faults.isOnline = true
      try await world.settle(pad, phone)
      #expect(try pad.snapshot() == phone.snapshot())
      // The server has tombstones of a deletion that the pad had not read.
      #expect(try pad.snapshot().count == 2)
      #expect(try phone.snapshot().values.contains { $0["CD_content"] == "string(\"edited\")" })
    }
  }
}
