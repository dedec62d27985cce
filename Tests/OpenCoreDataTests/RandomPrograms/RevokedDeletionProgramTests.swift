import Foundation
import OpenCoreData
import Testing

/// Random changes of folders and posts, all of whose deletions of folders lose against renames in
/// another context: the store must be as if the folders had not been deleted.
///
/// `WATERSHED_SEED` repeats a run, and `WATERSHED_PROGRAMS` sets the number of programs of each way.
@Suite("Random programs whose deletions of owners are revoked")
struct RevokedDeletionProgramTests {
  /// How the deletions come into the context that meets the conflicts.
  enum Way: CaseIterable {
    case direct, redone, child, grandchild

    var depth: Int {
      switch self {
      case .direct, .redone: 0
      case .child: 1
      case .grandchild: 2
      }
    }
  }

  private enum Step {
    case move(post: Int, folder: Int?)
    case insert(folder: Int)
    case delete(post: Int)
    case edit(post: Int)
    case process
  }

  private struct Program {
    let rule: NSDeleteRule
    let homes: [Int?]
    /// The steps in the context that meets the conflicts, and in its youngest descendant.
    var steps: [Step] = []
    var stepsBelow: [Step] = []
    var deleted: [Int] = []
  }

  private static let folders = 3
  private static let environment = ProcessInfo.processInfo.environment

  @Test("The store is as without the revoked deletions", arguments: Way.allCases)
  func agree(way: Way) throws {
    let seed = Self.environment["WATERSHED_SEED"].flatMap { UInt64($0) } ?? 1
    let programs = Self.environment["WATERSHED_PROGRAMS"].flatMap { UInt64($0) } ?? 40
    for number in 0..<max(programs / 4, 1) {
      let program = program(seed &+ number, way)
      var kept = program
      kept.deleted = []
      let (found, expected) = try (run(program, way), run(kept, way))
      #expect(found == expected, "WATERSHED_SEED=\(seed &+ number) \(way) \(program)")
      if found != expected { return }
    }
  }

  private func program(_ seed: UInt64, _ way: Way) -> Program {
    let dice = Dice(seed: seed)
    func home() -> Int? { dice.below(4) == 0 ? nil : dice.below(Self.folders) }
    let rule = dice.below(2) == 0 ? NSDeleteRule.cascadeDeleteRule : .nullifyDeleteRule
    var program = Program(rule: rule, homes: (0..<4).map { _ in home() })
    func step() -> Step {
      switch dice.below(8) {
      case 0: .delete(post: dice.below(4))
      case 1: .process
      case 3: .edit(post: dice.below(4))
      // A new object that is deleted by cascade leaves the context before the save.
      case 2 where rule == .nullifyDeleteRule: .insert(folder: dice.below(Self.folders))
      default: .move(post: dice.below(4), folder: home())
      }
    }
    program.steps = (0..<dice.below(4)).map { _ in step() }
    if way.depth > 0 {
      program.stepsBelow = (0..<dice.below(4)).map { _ in step() }
    }
    program.deleted = (0..<Self.folders).filter { _ in dice.below(2) == 0 }
    return program
  }

  /// The posts that the store has in the end.
  private func run(_ program: Program, _ way: Way) throws -> [String] {
    let stack = try FolderStack(rule: program.rule)
    let (first, second) = (stack.first, stack.second)
    first.mergePolicy = NSMergePolicy.mergeByPropertyStoreTrump
    // The conflicts need the folders' rows as they were before the renames.
    first.retainsRegisteredObjects = true
    try first.performAndWait {
      let folders = (0..<Self.folders).map { first.insert("Folder", ["name": "\($0)"]) }
      for (number, home) in program.homes.enumerated() {
        let post = first.insert("Post", ["title": "post \(number)"])
        if let home { post.setValue(folders[home], forKey: "folder") }
      }
      try first.save()
    }
    try second.performAndWait {
      for folder in try second.all("Folder", by: "name") {
        folder.setValue(
          (folder.value(forKey: "name") as? String ?? "") + " renamed",
          forKey: "name"
        )
      }
      try second.save()
    }
    var contexts = [first]
    for _ in 0..<way.depth {
      let child = NSManagedObjectContext(concurrencyType: .privateQueueConcurrencyType)
      child.parent = contexts.last
      contexts.append(child)
    }
    try first.performAndWait { try take(program.steps, first) }
    guard let last = contexts.last else { return [] }
    try last.performAndWait {
      try take(program.stepsBelow, last)
      try delete(program.deleted, last, isRedone: way == .redone)
    }
    for context in contexts.reversed() { try context.performAndWait { try context.save() } }
    try first.performAndWait {
      #expect(!first.hasChanges)
      for folder in try first.all("Folder") {
        for case let post as NSManagedObject in folder.mutableSetValue(forKey: "posts") {
          #expect(post.value(forKey: "folder") as? NSManagedObject === folder)
        }
      }
    }
    return try stack.posts()
  }

  private func take(_ steps: [Step], _ context: NSManagedObjectContext) throws {
    let folders = try context.all("Folder", by: "name")
    let posts = try (0..<4).map { number in
      try context.all("Post").first {
        ($0.value(forKey: "title") as? String)?.hasPrefix("post \(number)") == true
      }
    }
    for (place, step) in steps.enumerated() {
      switch step {
      case .move(let post, let folder):
        guard let post = posts[post], !post.isDeleted else { continue }
        post.setValue(folder.map { folders[$0] }, forKey: "folder")
      case .insert(let folder):
        let title = "new \(context.parent == nil) \(place)"
        _ = context.insert("Post", ["title": title, "folder": folders[folder]])
      case .delete(let post): if let post = posts[post] { context.delete(post) }
      case .edit(let number):
        guard let post = posts[number], !post.isDeleted else { continue }
        post.setValue("post \(number) edited \(context.parent == nil) \(place)", forKey: "title")
      case .process: context.processPendingChanges()
      }
    }
  }

  private func delete(
    _ numbers: [Int],
    _ context: NSManagedObjectContext,
    isRedone: Bool
  ) throws {
    let folders = try context.all("Folder", by: "name")
    let manager = UndoManager.manual()
    if isRedone {
      context.processPendingChanges()
      context.undoManager = manager
      manager.beginUndoGrouping()
    }
    for number in numbers { context.delete(folders[number]) }
    guard isRedone else { return }
    context.processPendingChanges()
    manager.endUndoGrouping()
    guard !numbers.isEmpty else { return }
    context.undo()
    context.redo()
  }
}
