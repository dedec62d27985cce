import Foundation
import OpenCoreData
import Testing

/// Random changes, saves, undos and redos in one context, while another context deletes objects: each
/// save must succeed, and show what the store then has.
///
/// `WATERSHED_SEED` repeats a run, and `WATERSHED_PROGRAMS` sets the number of programs.
@Suite("Random undos beside another context's deletions")
struct UndoBesideDeletionsTests {
  private static let environment = ProcessInfo.processInfo.environment
  private static let entities = ["Book", "Reader", "Subject"]

  @Test("Each save succeeds, and the context shows what the store has")
  func agree() throws {
    let seed = Self.environment["WATERSHED_SEED"].flatMap { UInt64($0) } ?? 1
    let programs = Self.environment["WATERSHED_PROGRAMS"].flatMap { UInt64($0) } ?? 60
    for number in 0..<max(programs / 4, 1) {
      let failure = try failure(of: seed &+ number)
      #expect(failure == nil, "WATERSHED_SEED=\(seed &+ number)")
      if failure != nil { return }
    }
  }

  /// The first difference or failed save of a program.
  private func failure(of seed: UInt64) throws -> String? {
    let dice = Dice(seed: seed)
    let library = try Library()
    let (mine, theirs) = (library.context(), library.context())
    mine.automaticallyMergesChangesFromParent = true
    theirs.automaticallyMergesChangesFromParent = true
    mine.mergePolicy = NSMergePolicy.mergeByPropertyObjectTrump
    let manager = UndoManager.manual()
    try mine.performAndWait {
      for entity in Self.entities { for _ in 0..<3 { _ = mine.insert(entity) } }
      for entity in Self.entities { try name(entity, mine) }
      try mine.save()
      mine.undoManager = manager
    }
    var log: [String] = []
    for _ in 0..<20 {
      let failure: String? = try mine.performAndWait {
        switch dice.below(10) {
        case 0..<5:
          manager.beginUndoGrouping()
          log.append(try change(mine, dice))
          mine.processPendingChanges()
          manager.endUndoGrouping()
          return nil
        case 5, 6:
          log.append("undo")
          mine.undo()
          return nil
        case 7:
          log.append("redo")
          mine.redo()
          return nil
        default:
          log.append("save")
          manager.beginUndoGrouping()
          defer { manager.endUndoGrouping() }
          return try save(mine, library)
        }
      }
      if let failure { return "\(failure) after \(log)" }
      // Only beside a context without changes: what it deletes here is no conflict.
      guard dice.below(3) == 0, mine.performAndWait({ !mine.hasChanges }) else { continue }
      let entity = dice.pick(Self.entities) ?? ""
      try theirs.performAndWait {
        guard let object = dice.pick(try theirs.all(entity, by: key(entity))) else { return }
        log.append("theirs: delete \(text(object))")
        theirs.delete(object)
        try theirs.save()
      }
      // Runs the merge, which the save has queued.
      for _ in 0..<2 { mine.performAndWait {} }
    }
    let failure: String? = try mine.performAndWait {
      manager.beginUndoGrouping()
      defer { manager.endUndoGrouping() }
      return try save(mine, library)
    }
    return failure.map { "\($0) at the end of \(log)" }
  }

  private func key(_ entity: String) -> String { entity == "Book" ? "title" : "name" }

  private func text(_ object: NSManagedObject?) -> String {
    object.flatMap { $0.value(forKey: key($0.entity.name ?? "")) as? String } ?? "-"
  }

  private func name(_ entity: String, _ context: NSManagedObjectContext) throws {
    for (number, object) in try context.all(entity).enumerated() {
      object.setValue("\(entity) \(number)", forKey: key(entity))
    }
  }

  private func change(_ context: NSManagedObjectContext, _ dice: Dice) throws -> String {
    let books = try context.all("Book", by: "title").compactMap { $0 as? Book }
    let readers = try context.all("Reader", by: "name").compactMap { $0 as? Reader }
    let subjects = try context.all("Subject", by: "name").compactMap { $0 as? Subject }
    switch dice.below(6) {
    case 0, 1:
      guard let book = dice.pick(books) else { return "-" }
      book.subjects = Set(subjects.filter { _ in dice.below(2) == 0 })
      return "\(text(book)) has \(book.subjects.map(text).sorted())"
    case 2:
      guard let subject = dice.pick(subjects) else { return "-" }
      subject.books = Set(books.filter { _ in dice.below(2) == 0 })
      return "\(text(subject)) has \(subject.books.map(text).sorted())"
    case 3, 4:
      guard let book = dice.pick(books) else { return "-" }
      book.loanedTo = dice.below(4) == 0 ? nil : dice.pick(readers)
      return "\(text(book)) to \(text(book.loanedTo))"
    default:
      guard let object = dice.pick(books + readers + subjects as [NSManagedObject]) else {
        return "-"
      }
      context.delete(object)
      return "delete \(text(object))"
    }
  }

  /// Saves, and compares the context with the store; returns what is wrong.
  private func save(_ context: NSManagedObjectContext, _ library: Library) throws -> String? {
    do {
      try context.save()
    } catch {
      return "\(error)"
    }
    let check = library.context()
    let (found, stored) = try (
      state(context), check.performAndWait { try state(check) }
    )
    context.processPendingChanges()
    return found == stored ? nil : "\(found), stored \(stored)"
  }

  private func state(_ context: NSManagedObjectContext) throws -> [String] {
    let books = try context.all("Book", by: "title").compactMap { $0 as? Book }.map { book in
      "\(text(book)): \(text(book.loanedTo)) \(book.subjects.map(text).sorted())"
    }
    let readers = try context.all("Reader", by: "name").compactMap { $0 as? Reader }.map { reader in
      "\(text(reader)): \(reader.loans.map(text).sorted())"
    }
    let subjects = try context.all("Subject", by: "name").compactMap { $0 as? Subject }.map {
      subject in
      "\(text(subject)): \(subject.books.map(text).sorted())"
    }
    return books + readers + subjects
  }
}
