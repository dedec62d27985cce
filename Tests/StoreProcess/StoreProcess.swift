import Foundation
import OpenCoreData

/// Another process on a store's file, for tests: it does what its input says, line by line.
///
/// `StoreProcess PATH`
///
/// `insert ENTITY ATTRIBUTE VALUE` saves an object, `update ENTITY ATTRIBUTE VALUE` changes all of an
/// entity by a batch, `listen` prints a line for each remote change from now on. It prints `done`
/// after each command and ends with its input.
@main
struct StoreProcess {
  static func main() throws {
    guard CommandLine.arguments.count == 2 else {
      FileHandle.standardError.write(Data("wrong arguments\n".utf8))
      exit(64)
    }
    let url = URL(fileURLWithPath: CommandLine.arguments[1])
    let coordinator = NSPersistentStoreCoordinator(
      managedObjectModel: try SQLiteStore.model(inStoreAt: url)
    )
    try coordinator.addPersistentStore(
      type: .sqlite,
      at: url,
      options: [
        NSPersistentHistoryTrackingKey: true,
        NSPersistentStoreRemoteChangeNotificationPostOptionKey: true,
      ]
    )
    let context = NSManagedObjectContext(.privateQueue)
    context.persistentStoreCoordinator = coordinator
    context.transactionAuthor = "StoreProcess"
    say("open")
    while let line = readLine() {
      let words = line.split(separator: " ").map(String.init)
      try context.performAndWait { try run(words, context) }
      say("done")
    }
  }

  private static func run(_ words: [String], _ context: NSManagedObjectContext) throws {
    switch words.first {
    case "insert" where words.count == 4:
      let object = NSEntityDescription.insertNewObject(forEntityName: words[1], into: context)
      object.setValue(words[3], forKey: words[2])
      try context.save()
    case "update" where words.count == 4:
      let request = NSBatchUpdateRequest(entityName: words[1])
      request.propertiesToUpdate = [words[2]: words[3]]
      try context.execute(request)
    case "listen":
      // It listens as long as the process lives.
      _ = NotificationCenter.default.addObserver(
        forName: .NSPersistentStoreRemoteChange,
        object: context.persistentStoreCoordinator,
        queue: nil
      ) { note in
        let token = note.userInfo?[NSPersistentHistoryTokenKey] as? NSPersistentHistoryToken
        say("changed \(token == nil ? "without" : "with") token")
      }
    default:
      say("unknown command")
    }
  }

  private static func say(_ line: String) {
    FileHandle.standardOutput.write(Data((line + "\n").utf8))
  }
}
