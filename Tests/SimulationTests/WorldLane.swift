import Effects

/// Plays worlds one after the other, outside the pool.
///
/// Worlds take seconds, and the pool has a thread for each processor: on two processors, worlds on the
/// pool would leave no thread for the tests that run at the same time.
let worldLane = Effects.live.waitingLane("simulated worlds")
