import CloudKit
import CloudKitTesting
import CoreData
import Foundation
import Testing

@Suite("Examples: mirroring")
struct MirroringExamples {
  private func report(_ error: any Error) {}

  // Compiled and not run: it writes to the user's own folder.
  private func container(_ localURL: URL) {
    // example: NSPersistentCloudKitContainer
    let container = NSPersistentCloudKitContainer(name: "Model")
    let local = NSPersistentStoreDescription(url: localURL)
    local.configuration = "Local"
    container.persistentStoreDescriptions.append(local)
    container.loadPersistentStores { _, error in if let error { report(error) } }
    // end
  }

  @Test("Options name the CloudKit container of a store")
  func options() {
    let container = NSPersistentCloudKitContainer(name: "Blog", managedObjectModel: Blog.model)
    let storeURL = URL(fileURLWithPath: "/dev/null")
    // example: NSPersistentCloudKitContainerOptions
    let description = NSPersistentStoreDescription(url: storeURL)
    description.cloudKitContainerOptions = NSPersistentCloudKitContainerOptions(
      containerIdentifier: "iCloud.org.example.app"
    )
    container.persistentStoreDescriptions = [description]
    // end
    let options = container.persistentStoreDescriptions.first?.cloudKitContainerOptions
    #expect(options?.containerIdentifier == "iCloud.org.example.app")
    #expect(options?.databaseScope == .private)
  }

  /// Runs a body with two devices of one user.
  private func withDevices(_ body: (TestDevice, TestDevice) async throws -> Void) async throws {
    try await Blog.withFolder { folder in
      let cloud = try await TestCloud()
      let phone = try await TestDevice(
        name: "phone",
        model: Blog.model,
        folder: folder,
        cloud: cloud
      )
      let laptop = try await TestDevice(
        name: "laptop",
        model: Blog.model,
        folder: folder,
        cloud: cloud
      )
      try phone.launch()
      try laptop.launch()
      try await body(phone, laptop)
      try await phone.quit()
      try await laptop.quit()
      await cloud.shutdown()
    }
  }

  @Test("Events say what the mirroring did, and are kept in the store")
  func events() async throws {
    try await withDevices { phone, _ in
      try phone.save { try $0.addPosts("Hello") }
      try await phone.sync()
      let container = phone.container
      let context = container.newBackgroundContext()
      try await context.perform {
        // example: NSPersistentCloudKitContainerEventRequest
        let request = NSPersistentCloudKitContainerEventRequest.fetchEvents(after: .distantPast)
        let result = try context.execute(request) as? NSPersistentCloudKitContainerEventResult
        let events = result?.result as? [NSPersistentCloudKitContainer.Event] ?? []
        for event in events where !event.succeeded {
          print(event.type, event.startDate, event.error.map(String.init(describing:)) ?? "")
        }
        // end
        #expect(events.contains { $0.type == .export && $0.succeeded })
      }
    }
  }

  // Compiled and not run: it waits for events until its task is cancelled.
  private func observe(_ container: NSPersistentCloudKitContainer) async {
    // example: NSPersistentCloudKitContainer.Event
    let notifications = NotificationCenter.default.notifications(
      named: NSPersistentCloudKitContainer.eventChangedNotification,
      object: container
    )
    for await notification in notifications {
      let key = NSPersistentCloudKitContainer.eventNotificationUserInfoKey
      guard let event = notification.userInfo?[key] as? NSPersistentCloudKitContainer.Event,
        event.endDate != nil, let error = event.error
      else { continue }
      report(error)
    }
    // end
  }

  @Test("An object's record has the documented name and fields")
  func records() async throws {
    try await withDevices { phone, _ in
      let objectID = try phone.save { try $0.addPosts("Hello")[0].objectID }
      try await phone.sync()
      let container = phone.container
      // example: Records of objects
      let record = container.record(for: objectID)
      print(record?.recordType ?? "", record?["CD_title"] as? String ?? "")
      // end
      #expect(record?.recordType == "CD_Post")
      #expect(record?["CD_title"] == "Hello")
    }
  }

  private func wantsBack(_ entry: NSPersistentCloudKitContainer.RecoveryEntry) -> Bool { true }

  @Test("An edit that another device's deletion overrode is restored from the list")
  func recovery() async throws {
    try await withDevices { phone, laptop in
      let objectID = try phone.save { try $0.addPosts("Hello")[0].objectID }
      try await phone.sync()
      try await laptop.sync()
      try laptop.save { context in
        let posts = try context.fetch(NSFetchRequest<Post>(entityName: "Post"))
        posts.forEach(context.delete)
      }
      try await laptop.sync()
      try phone.save { context in
        let post = try context.existingObject(with: objectID)
        post.setValue("Edited", forKey: "title")
      }
      try await phone.sync()
      let container = phone.container
      #expect(try container.recoveryEntries().count == 1)
      // example: Recovery list
      for entry in try container.recoveryEntries() where entry.entityName == "Post" {
        print(entry.date, entry.reason, entry.value(forKey: "title") ?? "untitled")
        if wantsBack(entry) { try container.restore(entry) } else { try container.discard([entry]) }
      }
      // end
      let titles = try phone.save { context in
        try context.fetch(NSFetchRequest<Post>(entityName: "Post")).map(\.title)
      }
      #expect(titles == ["Edited"])
    }
  }
}
