import Foundation

/// The effects of a container, a store or a server: its access to time, randomness, tasks and
/// files.
///
/// The code below uses these and nothing else for the time, for randomness and for concurrent work,
/// so that one seeded thread can run several devices and a server with a virtual clock, and repeat
/// every schedule.
public struct Effects: Sendable {
  /// The current time, and sleeping.
  public var clock: any EffectClock
  /// Random bits and identifiers.
  public var randomness: any RandomSource
  /// The only source of concurrent tasks.
  public var tasks: any TaskSpawner
  /// Notifications of writes to files by other processes.
  public var files: any FileWatching
  /// The files that are mapped into memory.
  package var mappings = FileMappings.shared
  #if DEBUG
  /// The defect that a test has switched on.
  var plantedBug: PlantedBug?
  #endif

  /// Creates effects; without a file watcher, writes of other processes are not noticed.
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

  /// The system's clock and randomness, the concurrent pool, and the kernel's notifications of
  /// files.
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

  /// A serial lane on the concurrent pool.
  public func lane(_ label: String) -> Lane {
    .serial(SerialLane(label: label, tasks: tasks))
  }

  /// A serial lane outside the pool, for work that waits for a disk or for another process.
  public func waitingLane(_ label: String) -> Lane {
    .serial(SerialLane(label: label, tasks: tasks.waiting(label)))
  }
}
