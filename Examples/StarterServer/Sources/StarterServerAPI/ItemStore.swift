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
    guard let url = Bundle.module.url(forResource: "StarterServer", withExtension: "momd"),
      let model = NSManagedObjectModel(contentsOf: url)
    else { fatalError("The model is not among the resources of StarterServerAPI.") }
    return model
  }()

  private let container: NSPersistentContainer

  /// Opens the store of a file, or makes it.
  ///
  /// - Throws: An error of the store that cannot be opened.
  public init(at url: URL) throws {
    let container = NSPersistentContainer(name: "StarterServer", managedObjectModel: Self.model)
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
