import Synchronization

/// The completed part of a migration, written by one thread and read by others.
final class MigrationProgress: Sendable {
  private let bits = Atomic<UInt32>(Float(0).bitPattern)

  var value: Float {
    get { Float(bitPattern: bits.load(ordering: .relaxed)) }
    set { bits.store(newValue.bitPattern, ordering: .relaxed) }
  }
}
