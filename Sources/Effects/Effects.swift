import Foundation

/// The doors to the outside that a container, a store or a server is given.
///
/// Code behind these doors asks for the time, for randomness and for concurrent work here and
/// nowhere else, so that one seeded thread can run several devices and a server under a virtual
/// clock with every schedule repeatable.
public struct Effects: Sendable {
  /// The time, and waiting for it.
  public var clock: any EffectClock
  /// Random bits and identifiers.
  public var randomness: any RandomSource
  /// The one place where concurrent work is started.
  public var tasks: any TaskSpawner
  /// Word of writes to files by other processes.
  public var files: any FileWatching
  #if DEBUG
  /// The defect that a test has switched on.
  var plantedBug: PlantedBug?
  #endif

  /// Creates a set of doors; without a watcher nothing is heard of other processes.
  public init(
    clock: any EffectClock,
    randomness: any RandomSource,
    tasks: any TaskSpawner,
    files: any FileWatching = NoFileWatching()
  ) {
    self.clock = clock
    self.randomness = randomness
    self.tasks = tasks
    self.files = files
  }

  /// The real clock, the system's randomness, the concurrent pool and the kernel's word of files.
  public static let live = Effects(
    clock: LiveClock(),
    randomness: SystemRandomness(),
    tasks: PoolTaskSpawner(),
    files: liveFiles
  )

  private static var liveFiles: any FileWatching {
    #if os(Linux)
    SystemFileWatching.shared
    #else
    NoFileWatching()
    #endif
  }

  /// The wall-clock time now.
  public var now: Date { clock.now }

  /// A new random identifier.
  public func uuid() -> UUID { randomness.uuid() }

  /// A serial lane of work on the concurrent pool.
  public func lane(_ label: String) -> Lane {
    .serial(SerialLane(label: label, tasks: tasks))
  }

  /// A serial lane of work that waits for a disk or for another process, beside the pool.
  public func waitingLane(_ label: String) -> Lane {
    .serial(SerialLane(label: label, tasks: tasks.waiting(label)))
  }
}
