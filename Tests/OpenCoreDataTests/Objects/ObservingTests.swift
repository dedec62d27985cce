import Foundation
import OpenCoreData
import Testing

@Suite("Key-value observing")
struct ObservingTests {
  /// Records its notifications.
  final class Watcher: NSObject, NSKeyValueObserver {
    var changes: [(keyPath: String?, change: [NSKeyValueChangeKey: Any])] = []
    var contexts: [UnsafeMutableRawPointer?] = []

    func observeValue(
      forKeyPath keyPath: String?,
      of object: Any?,
      change: [NSKeyValueChangeKey: Any]?,
      context: UnsafeMutableRawPointer?
    ) {
      changes.append((keyPath, change ?? [:]))
      contexts.append(context)
    }
  }

  private func with<Result>(
    _ body: (NSManagedObjectContext) throws -> Result
  ) throws -> Result {
    let library = try Library()
    let context = library.context()
    return try context.performAndWait { try body(context) }
  }

  @Test("An observer is notified of a change with the old and the new value")
  func attribute() throws {
    try with { context in
      let reader = Reader(context: context)
      let watcher = Watcher()
      reader.addObserver(watcher, forKeyPath: "name", options: [.old, .new], context: nil)
      reader.name = "Ada"
      reader.setValue("Eve", forKey: "name")
      try #require(watcher.changes.count == 2)
      #expect(watcher.changes[0].keyPath == "name")
      #expect(watcher.changes[0].change[.oldKey] as? String == "nobody")
      #expect(watcher.changes[0].change[.newKey] as? String == "Ada")
      #expect(watcher.changes[0].change[.kindKey] as? UInt == NSKeyValueChange.setting.rawValue)
      #expect(watcher.changes[1].change[.oldKey] as? String == "Ada")
      reader.removeObserver(watcher, forKeyPath: "name")
      reader.name = "Ann"
      #expect(watcher.changes.count == 2)
    }
  }

  @Test("Nil is NSNull in a change, and without options a change has only its kind")
  func nilAndOptions() throws {
    try with { context in
      let book = Book(context: context)
      let watcher = Watcher()
      book.addObserver(watcher, forKeyPath: "title", options: [.old, .new], context: nil)
      book.title = "Emma"
      book.title = nil
      #expect(watcher.changes[0].change[.oldKey] is NSNull)
      #expect(watcher.changes[1].change[.newKey] is NSNull)
      let silent = Watcher()
      book.addObserver(silent, forKeyPath: "title", options: [], context: nil)
      book.title = "Persuasion"
      #expect(silent.changes.map { Set($0.change.keys) } == [[.kindKey]])
    }
  }

  @Test(".initial notifies immediately, .prior notifies before the change")
  func initialAndPrior() throws {
    try with { context in
      let reader = Reader(context: context)
      let watcher = Watcher()
      reader.addObserver(
        watcher,
        forKeyPath: "age",
        options: [.initial, .prior, .new, .old],
        context: nil
      )
      #expect(watcher.changes.count == 1)
      #expect(watcher.changes[0].change[.newKey] as? Int == 18)
      #expect(watcher.changes[0].change[.oldKey] == nil)
      reader.age = 30
      try #require(watcher.changes.count == 3)
      #expect(watcher.changes[1].change[.notificationIsPriorKey] as? Bool == true)
      #expect(watcher.changes[1].change[.oldKey] as? Int == 18)
      #expect(watcher.changes[1].change[.newKey] == nil)
      #expect(watcher.changes[2].change[.newKey] as? Int == 30)
      #expect(watcher.changes[2].change[.notificationIsPriorKey] == nil)
    }
  }

  @Test("Added and removed members are insertions and removals, on both sides of a relationship")
  func members() throws {
    try with { context in
      let reader = Reader(context: context)
      let book = Book(context: context)
      let (ofReader, ofBook) = (Watcher(), Watcher())
      reader.addObserver(ofReader, forKeyPath: "loans", options: [.old, .new], context: nil)
      book.addObserver(ofBook, forKeyPath: "loanedTo", options: [.old, .new], context: nil)
      book.loanedTo = reader
      reader.mutableSetValue(forKey: "loans").remove(book)
      reader.loans = [book]
      let kinds = ofReader.changes.compactMap {
        ($0.change[.kindKey] as? UInt).flatMap(NSKeyValueChange.init(rawValue:))
      }
      #expect(kinds == [.insertion, .removal, .setting])
      #expect(ofReader.changes[0].change[.newKey] as? Set<Book> == [book])
      #expect(ofReader.changes[1].change[.oldKey] as? Set<Book> == [book])
      #expect(ofReader.changes[2].change[.newKey] as? Set<Book> == [book])
      #expect(ofBook.changes.count == 3)
      #expect(ofBook.changes[0].change[.newKey] as? Reader === reader)
      #expect(ofBook.changes[1].change[.newKey] is NSNull)
    }
  }

  @Test("A change of an ordered relationship has the changed indexes")
  func ordered() throws {
    try with { context in
      let book = Book(context: context)
      let watcher = Watcher()
      book.addObserver(watcher, forKeyPath: "chapters", options: [.old, .new], context: nil)
      let chapters = book.mutableOrderedSetValue(forKey: "chapters")
      let first = NSEntityDescription.insertNewObject(forEntityName: "Chapter", into: context)
      let second = NSEntityDescription.insertNewObject(forEntityName: "Chapter", into: context)
      chapters.add(second)
      chapters.insert(first, at: 0)
      chapters.removeObject(at: 1)
      let places = watcher.changes.map { $0.change[.indexesKey] as? IndexSet }
      #expect(places == [[0], [0], [1]])
      #expect(watcher.changes[1].change[.newKey] as? [NSManagedObject] == [first])
      #expect(watcher.changes[2].change[.oldKey] as? [NSManagedObject] == [second])
    }
  }

  @Test("Observing a key path over a to-one follows the current destination")
  func keyPath() throws {
    try with { context in
      let book = Book(context: context)
      let (ada, eve) = (Reader(context: context), Reader(context: context))
      (ada.name, eve.name) = ("Ada", "Eve")
      let watcher = Watcher()
      book.addObserver(watcher, forKeyPath: "loanedTo.name", options: [.old, .new], context: nil)
      book.loanedTo = ada
      ada.name = "Ada L."
      book.loanedTo = eve
      ada.name = "gone"
      eve.name = "Eva"
      let values = watcher.changes.map { $0.change[.newKey] as? String }
      #expect(values == ["Ada", "Ada L.", "Eve", "Eva"])
      book.removeObserver(watcher, forKeyPath: "loanedTo.name")
      eve.name = "Eve"
      #expect(watcher.changes.count == 4)
    }
  }

  @Test("A property is notified when a property that affects it changes")
  func dependent() throws {
    try with { context in
      let card = Card(context: context)
      let reader = Reader(context: context)
      card.reader = reader
      let watcher = Watcher()
      card.addObserver(watcher, forKeyPath: "label", options: [.new], context: nil)
      card.number = "7"
      reader.name = "Ada"
      #expect(watcher.changes.map { $0.change[.newKey] as? String } == ["7 nobody", "7 Ada"])
    }
  }

  @Test("observe(_:) finds the property of a Swift key path, and ends with its token")
  func swiftKeyPath() throws {
    try with { context in
      let reader = Reader(context: context)
      let book = Book(context: context)
      var names: [String?] = []
      var token: NSKeyValueObservation? = reader.observe(\.name, options: [.old, .new]) {
        #expect($0 === reader)
        names += [$1.oldValue, $1.newValue]
      }
      reader.name = "Ada"
      #expect(names == ["nobody", "Ada"])
      token?.invalidate()
      token = nil
      reader.name = "Eve"
      #expect(names.count == 2)
      var titles: [String??] = []
      let title = book.observe(\.title, options: [.new]) { titles.append($1.newValue) }
      var owners: [String?] = []
      let owner = book.observe(\.loanedTo?.name, options: [.new]) {
        owners.append($1.newValue.flatMap { $0 })
      }
      var loans: [Set<Book>] = []
      let members = reader.observe(\.loans, options: [.new]) {
        loans.append($1.newValue ?? [])
        #expect($1.kind == .insertion)
      }
      book.title = "Emma"
      book.title = nil
      book.loanedTo = reader
      #expect(titles == [.some("Emma"), .some(nil)])
      #expect(owners == ["Eve"])
      #expect(loans == [[book]])
      withExtendedLifetime((title, owner, members)) {}
    }
  }

  @Test("Nested changes are one change, and custom accessors announce themselves")
  func nestedAndManual() throws {
    try with { context in
      let reader = Reader(context: context)
      let watcher = Watcher()
      reader.addObserver(watcher, forKeyPath: "name", options: [.old, .new], context: nil)
      reader.willChangeValue(forKey: "name")
      reader.setPrimitiveValue("Ada", forKey: "name")
      reader.name = "Eve"
      reader.didChangeValue(forKey: "name")
      #expect(watcher.changes.count == 1)
      #expect(watcher.changes[0].change[.oldKey] as? String == "nobody")
      #expect(watcher.changes[0].change[.newKey] as? String == "Eve")
      let book = Book(context: context)
      reader.addObserver(watcher, forKeyPath: "loans", options: [.new], context: nil)
      let added: Set<AnyHashable> = [book]
      reader.willChangeValue(forKey: "loans", withSetMutation: .union, using: added)
      reader.setPrimitiveValue(NSSet(array: [book]), forKey: "loans")
      reader.didChangeValue(forKey: "loans", withSetMutation: .union, using: added)
      #expect(watcher.changes.count == 2)
      #expect(watcher.changes[1].change[.newKey] as? Set<Book> == [book])
    }
  }

  @Test("Rolling back, refreshing and merging notify observers")
  func pastTheAccessors() throws {
    let library = try Library()
    let context = library.context()
    let other = library.context()
    try context.performAndWait {
      let reader = Reader(context: context)
      reader.name = "Ada"
      try context.save()
      let watcher = Watcher()
      reader.addObserver(watcher, forKeyPath: "name", options: [.new], context: nil)
      reader.name = "Eve"
      context.rollback()
      #expect(watcher.changes.last?.change[.newKey] as? String == "Ada")
      let identifier = reader.objectID
      try other.performAndWait {
        (other.object(with: identifier) as? Reader)?.name = "Zoe"
        try other.save()
      }
      context.refresh(reader, mergeChanges: true)
      #expect(watcher.changes.last?.change[.newKey] as? String == "Zoe")
      #expect(watcher.changes.count == 3)
    }
  }

  @Test("Registrations with different context pointers are distinct")
  func contexts() throws {
    try with { context in
      let reader = Reader(context: context)
      let watcher = Watcher()
      let one = UnsafeMutableRawPointer.allocate(byteCount: 1, alignment: 1)
      let two = UnsafeMutableRawPointer.allocate(byteCount: 1, alignment: 1)
      defer {
        one.deallocate()
        two.deallocate()
      }
      reader.addObserver(watcher, forKeyPath: "name", context: one)
      reader.addObserver(watcher, forKeyPath: "name", context: two)
      reader.name = "Ada"
      #expect(watcher.contexts == [one, two])
      reader.removeObserver(watcher, forKeyPath: "name", context: one)
      reader.name = "Eve"
      #expect(watcher.contexts == [one, two, two])
    }
  }

  @Test("Observed objects without references are released, and so are their observers")
  func lifetime() throws {
    try with { context in
      weak var seen: Book?
      let reader = Reader(context: context)
      try context.save()
      do {
        let book = Book(context: context)
        book.loanedTo = reader
        try context.save()
        seen = book
        let watcher = Watcher()
        book.addObserver(watcher, forKeyPath: "loanedTo.name", context: nil)
        context.refresh(book, mergeChanges: false)
        context.refresh(reader, mergeChanges: false)
        _ = watcher
      }
      context.processPendingChanges()
      #expect(seen == nil)
      reader.name = "still fine"
    }
  }

  @Test("Removing an observer that was never added stops the program with Apple's text")
  func unknownObserver() async {
    let result = await #expect(
      processExitsWith: .failure,
      observing: [\.standardErrorContent]
    ) {
      let library = try Library(inMemory: true)
      let context = library.context()
      context.performAndWait {
        Reader(context: context).removeObserver(Watcher(), forKeyPath: "name")
      }
    }
    #expect(said(result, "because it is not registered as an observer."))
  }
}

@Suite("Observing the states of objects and contexts")
struct StateObservingTests {
  @Test("hasChanges, isInserted, isUpdated and isDeleted notify of inserting, saving and deleting")
  func objectState() throws {
    let library = try Library()
    let context = library.context()
    try context.performAndWait {
      let reader = Reader(context: context)
      var observed: [String] = []
      let observations = [
        reader.observe(\.hasChanges, options: [.old, .new]) { _, change in
          observed.append("changes \(change.oldValue ?? false)-\(change.newValue ?? false)")
        },
        reader.observe(\.isInserted, options: .new) { _, change in
          observed.append("inserted \(change.newValue ?? false)")
        },
        reader.observe(\.isUpdated, options: .new) { _, change in
          observed.append("updated \(change.newValue ?? false)")
        },
        reader.observe(\.isDeleted, options: .new) { _, change in
          observed.append("deleted \(change.newValue ?? false)")
        },
      ]
      try context.save()
      #expect(observed == ["changes true-false", "inserted false"])
      observed = []
      reader.name = "Ada"
      reader.name = "Eve"
      #expect(observed == ["changes false-true", "updated true"])
      observed = []
      context.rollback()
      #expect(observed == ["changes true-false", "updated false"])
      observed = []
      context.delete(reader)
      #expect(observed == ["changes false-true", "deleted true"])
      for observation in observations { observation.invalidate() }
    }
  }

  @Test("isFault, objectID and managedObjectContext are observed")
  func identity() throws {
    let library = try Library()
    let context = library.context()
    try context.performAndWait {
      let reader = Reader(context: context)
      var observed: [String] = []
      let observations = [
        reader.observe(\.isFault, options: .new) { _, change in
          observed.append("fault \(change.newValue ?? false)")
        },
        reader.observe(\.objectID, options: [.old, .new]) { _, change in
          observed.append("\(change.oldValue?.isTemporaryID ?? false)")
          observed.append("\(change.newValue?.isTemporaryID ?? true)")
        },
        reader.observe(\.managedObjectContext, options: .new) { _, change in
          observed.append(change.newValue.map { $0 == nil ? "no context" : "context" } ?? "?")
        },
      ]
      try context.save()
      #expect(observed == ["true", "false"])
      observed = []
      context.refresh(reader, mergeChanges: false)
      _ = reader.name
      #expect(observed == ["fault true", "fault false"])
      observed = []
      context.reset()
      #expect(observed == ["fault true", "no context"])
      for observation in observations { observation.invalidate() }
    }
  }

  @Test("isFault is observed of an object whose row came with a fetch")
  func prefetchedFault() throws {
    let library = try Library()
    let setup = library.context()
    try setup.performAndWait {
      Card(context: setup).number = "7"
      try setup.save()
    }
    let context = library.context()
    // A class that overrides awakeFromFetch() takes another way.
    try context.performAndWait {
      let request = NSFetchRequest<Card>(entityName: "Card")
      let card = try #require(try context.fetch(request).first)
      #expect(card.isFault)
      var observed: [Bool?] = []
      let observation = card.observe(\.isFault, options: .new) { _, change in
        observed.append(change.newValue)
      }
      #expect(card.number == "7")
      #expect(observed == [false])
      observation.invalidate()
    }
  }

  @Test("A context's hasChanges is observed by key path and by name")
  func contextState() throws {
    let library = try Library()
    let context = library.context()
    try context.performAndWait {
      let watcher = ObservingTests.Watcher()
      var observed: [Bool] = []
      let observation = context.observe(\.hasChanges, options: [.initial, .new]) { _, change in
        observed.append(change.newValue ?? false)
      }
      context.addObserver(watcher, forKeyPath: "hasChanges", options: .new, context: nil)
      let reader = Reader(context: context)
      reader.name = "Ada"
      try context.save()
      context.delete(reader)
      context.rollback()
      observation.invalidate()
      context.removeObserver(watcher, forKeyPath: "hasChanges")
      _ = Reader(context: context)
      #expect(observed == [false, true, false, true, false])
      #expect(watcher.changes.count == 4)
    }
  }

  @Test("A key path that is no property stops the program with an error text")
  func unknownKeyPath() async {
    await #expect(processExitsWith: .failure) {
      let library = try Library()
      let context = library.context()
      context.performAndWait {
        _ = Reader(context: context).observe(\.faultlessness) { _, _ in }
      }
    }
  }
}

extension Reader {
  var faultlessness: Int { 7 }
}
