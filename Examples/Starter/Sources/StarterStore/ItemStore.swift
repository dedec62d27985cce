import CloudKit
import CoreData
import Foundation

/// The items of one device, mirrored with a server where one is configured.
public struct ItemStore: Sendable {
  /// The model; every container of a process uses the same one, which its classes belong to.
  public static let model: NSManagedObjectModel = {
    guard let url = Bundle.module.url(forResource: "Starter", withExtension: "momd"),
      let model = NSManagedObjectModel(contentsOf: url)
    else { fatalError("The model is not among the resources of StarterStore.") }
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
    let container = NSPersistentCloudKitContainer(name: "Starter", managedObjectModel: Self.model)
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
