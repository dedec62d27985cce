import Effects
import Foundation
import OpenCoreData
import Testing

/// A list that a delegate's calls keep is compared with a new fetch after each turn.
@Suite("Random changes of fetched results")
struct FetchedResultsRandomTests {
  @Test("The changes that a delegate receives transform each list into the next", arguments: 1...12)
  func ownChanges(seed: UInt64) throws {
    let world = try FetchedResultsWorld(seed: seed, isChild: false)
    for turn in 0..<40 {
      try world.change()
      if turn % 7 == 6 { try world.save() }
      try world.check("seed \(seed), turn \(turn)")
    }
  }

  @Test(
    "Merges in any order, with own changes, lead to the list that a fetch finds",
    arguments: 1...12,
    [false, true]
  )
  func merges(seed: UInt64, isChild: Bool) throws {
    let world = try FetchedResultsWorld(seed: seed, isChild: isChild)
    for turn in 0..<40 {
      for _ in 0...world.roll(3) { try world.writeElsewhere() }
      if world.roll(2) == 0 { try world.change() }
      world.mergeSome()
      if world.roll(3) > 0 { continue }
      world.mergeAll()
      try world.check("seed \(seed), turn \(turn), child: \(isChild)")
      if world.roll(2) == 0 {
        try world.save()
        try world.check("seed \(seed), turn \(turn), child: \(isChild), saved")
      }
    }
  }
}

/// A context with a list in sections, and another that writes to the same store.
private final class FetchedResultsWorld {
  private let library: Library
  private let random: SeededRandomness
  private let parent: NSManagedObjectContext
  private let viewer: NSManagedObjectContext
  private let writer: NSManagedObjectContext
  private let results: NSFetchedResultsController<Book>
  private let recorder = FetchedResultsRecorder()
  /// The identifiers of the writer's saves that were not merged yet.
  private var saves: [[AnyHashable: Any]] = []
  private var titles = 0

  init(seed: UInt64, isChild: Bool) throws {
    library = try Library(inMemory: true)
    random = SeededRandomness(seed: seed)
    parent = library.context()
    writer = library.context()
    if isChild {
      viewer = NSManagedObjectContext(concurrencyType: .privateQueueConcurrencyType)
      viewer.parent = parent
      viewer.automaticallyMergesChangesFromParent = true
    } else {
      viewer = parent
    }
    // A deletion here is kept where the writer changed the object.
    for context in [parent, viewer] {
      context.mergePolicy = NSMergePolicy.mergeByPropertyObjectTrump
    }
    let request = NSFetchRequest<Book>(entityName: "Book")
    request.predicate = NSPredicate(format: "copies < 6")
    request.sortDescriptors = ["pages", "title"].map { NSSortDescriptor(key: $0, ascending: true) }
    results = NSFetchedResultsController(
      fetchRequest: request,
      managedObjectContext: viewer,
      sectionNameKeyPath: "pages",
      cacheName: nil
    )
    results.delegate = recorder
    try viewer.performAndWait {
      try results.performFetch()
      recorder.show(results)
    }
  }

  func roll(_ bound: Int) -> Int { Int(random.next() % UInt64(bound)) }

  private func insert(into context: NSManagedObjectContext) {
    titles += 1
    let book = Book(context: context)
    book.title = "t\(roll(100)) \(titles)"
    book.pages = Int64(roll(4))
    book.setValue(roll(10), forKey: "copies")
  }

  /// Changes one of the books, or inserts one.
  private func step(in context: NSManagedObjectContext) throws {
    let request = NSFetchRequest<Book>(entityName: "Book")
    request.sortDescriptors = [NSSortDescriptor(key: "title", ascending: true)]
    let books = try context.fetch(request)
    guard !books.isEmpty, roll(3) > 0 else { return insert(into: context) }
    let book = books[roll(books.count)]
    switch roll(5) {
    case 0: context.delete(book)
    case 1: book.pages = Int64(roll(4))
    case 2: book.title = "t\(roll(100)) \(book.title?.split(separator: " ").last ?? "")"
    default: book.setValue(roll(10), forKey: "copies")
    }
  }

  // MARK: The viewer

  /// Changes books in a turn of the viewer.
  func change() throws {
    try viewer.performAndWait {
      for _ in 0...roll(4) { try step(in: viewer) }
      switch roll(8) {
      case 0: viewer.rollback()
      case 1: viewer.refreshAllObjects()
      default: break
      }
    }
  }

  func save() throws {
    try viewer.performAndWait { try viewer.save() }
    if viewer !== parent { try parent.performAndWait { try parent.save() } }
    settle()
  }

  // MARK: The writer

  /// Changes one book in the writer, and saves.
  func writeElsewhere() throws {
    let collected = Collected()
    let token = NotificationCenter.default.addObserver(
      forName: .NSManagedObjectContextDidSaveObjectIDs,
      object: writer,
      queue: nil
    ) { collected.userInfo = $0.userInfo }
    defer { NotificationCenter.default.removeObserver(token) }
    try writer.performAndWait {
      writer.reset()
      try step(in: writer)
      try writer.save()
    }
    if let userInfo = collected.userInfo { saves.append(userInfo) }
  }

  private final class Collected: @unchecked Sendable {
    // Sendable: the notification is posted on the test's thread.
    var userInfo: [AnyHashable: Any]?
  }

  // MARK: Merging

  /// Merges some of the writer's saves, in any order.
  func mergeSome() {
    for _ in 0..<roll(saves.count + 1) { merge(saves.remove(at: roll(saves.count))) }
  }

  /// Merges the rest.
  func mergeAll() {
    while !saves.isEmpty { merge(saves.remove(at: roll(saves.count))) }
  }

  private func merge(_ save: [AnyHashable: Any]) {
    NSManagedObjectContext.mergeChanges(fromRemoteContextSave: save, into: [parent])
    settle()
  }

  /// Runs what is queued on the lanes.
  private func settle() {
    for context in [parent, viewer, parent, viewer] { context.performAndWait {} }
  }

  // MARK: Checking

  func check(_ what: Comment) throws {
    try viewer.performAndWait {
      viewer.processPendingChanges()
      let fetched = try viewer.fetch(results.fetchRequest)
      #expect(results.fetchedObjects == fetched, what)
      let sections = Dictionary(grouping: fetched, by: \.pages).sorted { $0.key < $1.key }
      #expect(results.sections?.map(\.name) == sections.map { "\($0.key)" }, what)
      #expect(recorder.shown == sections.map { $0.value.map { $0.title ?? "" } }, what)
      for (section, info) in (results.sections ?? []).enumerated() {
        let objects = info.objects as? [Book] ?? []
        #expect(info.numberOfObjects == objects.count, what)
        for (item, book) in objects.enumerated() {
          let path = IndexPath(item: item, section: section)
          #expect(results.indexPath(forObject: book) == path, what)
          #expect(results.object(at: path) === book, what)
        }
      }
    }
  }
}
