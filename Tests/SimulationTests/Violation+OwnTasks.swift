import Simulation

extension [Violation] {
  /// The violations without tasks that left the scheduler.
  ///
  /// A change of the account wakes every mirror of the process. Other tests of the same process have
  /// mirrors too, and their tasks belong to the pool; `watershed simulate` has a process of its own and
  /// reports each task that leaves the scheduler.
  var ofOwnTasks: [Violation] {
    filter { !$0.text.hasPrefix("A task left the scheduler") }
  }
}
