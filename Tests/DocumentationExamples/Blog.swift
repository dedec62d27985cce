import CoreData
import Foundation
import Testing

/// The model of the examples, and stores of it for their tests.
enum Blog {
  /// The model; every container of a process uses the same one, which its classes belong to.
  static let model: NSManagedObjectModel = {
    guard let url = Bundle.module.url(forResource: "Blog", withExtension: "momd"),
      let model = NSManagedObjectModel(contentsOf: url)
    else { fatalError("The model is not among the resources of the examples.") }
    return model
  }()

  /// A container whose store is in memory.
  static func inMemory() throws -> NSPersistentContainer {
    try container(at: URL(fileURLWithPath: "/dev/null"))
  }

  /// A container with a store in a file, with history.
  static func container(at url: URL) throws -> NSPersistentContainer {
    let container = NSPersistentContainer(name: "Blog", managedObjectModel: model)
    let description = NSPersistentStoreDescription(url: url)
    description.setOption(true as NSNumber, forKey: NSPersistentHistoryTrackingKey)
    container.persistentStoreDescriptions = [description]
    var failure: (any Error)?
    container.loadPersistentStores { _, error in failure = failure ?? error }
    if let failure { throw failure }
    return container
  }

  /// Runs a body with a folder that is removed afterwards.
  static func withFolder<Result>(
    _ body: (URL) async throws -> Result
  ) async throws -> Result {
    let folder = FileManager.default.temporaryDirectory
      .appendingPathComponent("watershed-examples-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    return try await body(folder)
  }
}

extension NSManagedObjectContext {
  /// Adds posts with these titles, created one minute apart, and saves them.
  @discardableResult
  func addPosts(_ titles: String...) throws -> [Post] {
    let posts = titles.enumerated().map { index, title in
      let post = Post(context: self)
      post.title = title
      post.created = Date(timeIntervalSinceReferenceDate: Double(index) * 60)
      return post
    }
    try save()
    return posts
  }
}

@Suite("Examples: the model")
struct BlogTests {
  @Test("The model of the examples has its entities and classes")
  func model() throws {
    let context = try Blog.inMemory().newBackgroundContext()
    try context.performAndWait {
      try context.addPosts("One")
      #expect(try context.count(for: Post.fetchRequest()) == 1)
    }
  }
}
