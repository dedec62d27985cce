import Foundation
import OpenCoreData
import SystemCallFaults

/// Another process that opens a store's file, for tests: it executes its input line by line.
///
/// `StoreProcess PATH [async|dispatch|runloop] [one-core]`
///
/// `insert ENTITY ATTRIBUTE VALUE` saves an object, `update ENTITY ATTRIBUTE VALUE` changes all
/// rows of an entity by a batch, `listen` prints a line for each remote change from then on. It
/// prints `done` after each command and ends at the end of its input. With the second argument it
/// saves on the main queue and on another, while the main thread runs as the argument says and an
/// observer waits for the main queue.
///
/// `StoreProcess FOLDER faults SCENARIO FAULT [POINTS]` is a `FaultRunner`.
@main
struct StoreProcess {
  static func main() throws {
    if CommandLine.arguments.last == "one-core" { beginOnOneCore() }
    if CommandLine.arguments.count > 2, try runFaults(CommandLine.arguments) { return }
    guard (2...3).contains(CommandLine.arguments.count) else {
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
    if CommandLine.arguments.count == 3 {
      say("open")
      try run(mainThread: CommandLine.arguments[2], coordinator)
    }
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

  /// Restarts this program on one processor: runtimes count processors at their start.
  private static func beginOnOneCore() -> Never {
    guard system_calls_use_one_processor() == 0 else { exit(71) }
    var words = CommandLine.arguments.dropLast().map { strdup($0) }
    words.append(nil)
    execv("/proc/self/exe", &words)
    exit(71)
  }

  /// Runs a fault scenario, if the arguments ask for one.
  private static func runFaults(_ words: [String]) throws -> Bool {
    func runner(_ fault: FaultRunner.Fault, _ points: Int?) -> FaultRunner? {
      FaultScenario(rawValue: words[3]).map {
        FaultRunner(
          folder: URL(fileURLWithPath: words[1]),
          scenario: $0,
          fault: fault,
          points: points
        )
      }
    }
    switch words[2] {
    case "neighbour":
      FaultNeighbour.run()
    case "killed" where words.count >= 5:
      let fault = words.count > 5 ? FaultRunner.Fault.power : .kill
      try runner(fault, nil)?.runUntilKilled(at: Int(words[4]) ?? 0)
    case "faults" where words.count >= 5:
      guard let fault = FaultRunner.Fault(rawValue: words[4]) else { return false }
      say("open")
      try runner(fault, words.count > 5 ? Int(words[5]) : nil)?.run()
    default:
      return false
    }
    return true
  }

  /// Saves on the main queue and on another; ends the process when the observer was called for
  /// both.
  private static func run(
    mainThread mode: String,
    _ coordinator: NSPersistentStoreCoordinator
  ) throws -> Never {
    // A deadlock ends the process and fails its test.
    alarm(300)
    let observed = Counter()
    _ = NotificationCenter.default.addObserver(
      forName: .NSPersistentStoreRemoteChange,
      object: coordinator,
      queue: .main
    ) { _ in
      guard observed.next() == 2 else { return }
      say("observed")
      exit(0)
    }
    let work = { @MainActor @Sendable in
      for type in [NSManagedObjectContext.ConcurrencyType.mainQueue, .privateQueue] {
        let context = NSManagedObjectContext(type)
        context.persistentStoreCoordinator = coordinator
        try context.performAndWait {
          _ = NSEntityDescription.insertNewObject(forEntityName: "Bin", into: context)
          try context.save()
        }
      }
      say("saved")
    }
    switch mode {
    case "async":
      // Like an asynchronous main: its task runs on the main actor, and the main thread is given
      // up.
      Task { @MainActor in try work() }
      dispatchMain()
    case "dispatch":
      DispatchQueue.main.async { try? MainActor.assumeIsolated(work) }
      dispatchMain()
    default:
      try MainActor.assumeIsolated(work)
      RunLoop.main.run()
      exit(1)
    }
  }

  /// Used only on the main queue.
  private final class Counter: @unchecked Sendable {
    private var count = 0

    func next() -> Int {
      count += 1
      return count
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
      // The observer stays registered for the life of the process.
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
