import Foundation
import OpenCoreData
import Testing

@Suite("Results as an asynchronous sequence")
struct FetchedResultsUpdatesTests {
  @Test("The sequence returns the first results, then each change with its difference")
  func updates() async throws {
    let library = try Library(inMemory: true)
    let context = library.context()
    let request = NSFetchRequest<Book>(entityName: "Book")
    request.sortDescriptors = [NSSortDescriptor(key: "title", ascending: true)]
    var lists = context.updates(of: request).makeAsyncIterator()
    let first = try #require(try await lists.next())
    #expect(first.objectIDs.isEmpty)
    #expect(first.sections.count == 1)

    await context.perform { Book(context: context).title = "B" }
    let second = try #require(try await lists.next())
    let titles = await context.perform { second.objects(in: context).map(\.title) }
    #expect(titles == ["B"])
    #expect(second.difference.insertions.count == 1)
    #expect(second.difference.removals.isEmpty)

    try await context.perform { try context.save() }
    let third = try #require(try await lists.next())
    #expect(third.objectIDs.map(\.isTemporaryID) == [false])
  }

  @Test("A request that fails ends the sequence with its error")
  func failing() async throws {
    let library = try Library(inMemory: true)
    let context = library.context()
    let request = NSFetchRequest<Book>(entityName: "Nonesuch")
    request.sortDescriptors = [NSSortDescriptor(key: "title", ascending: true)]
    await #expect(throws: (any Error).self) {
      for try await _ in context.updates(of: request) {}
    }
  }

  @Test("Notifications are a sequence, filtered by their object")
  func notifications() async throws {
    let center = NotificationCenter()
    let name = Notification.Name("tests.rain")
    let (cloud, other) = (NSObject(), NSObject())
    var notes = center.notifications(named: name, object: cloud).makeAsyncIterator()
    center.post(name: name, object: other)
    center.post(name: name, object: cloud, userInfo: ["drops": 3])
    let note = try #require(await notes.next())
    #expect(note.userInfo?["drops"] as? Int == 3)
  }
}
