import Foundation

extension NSManagedObjectContext {
  /// Drops cached rows that exceed the staleness interval, before they are read.
  func forgetStale(_ objects: [NSManagedObject], in rows: any RowStore) {
    guard stalenessInterval >= 0 else { return }
    guard stalenessInterval > 0 else { return rows.forget(objects.map(\.key.reference)) }
    let now = uptime
    let stale = objects.filter { object in
      readTimes[object.key].map { now - $0 > stalenessInterval } ?? true
    }
    for object in stale { readTimes[object.key] = now }
    dropOldReadTimes(now)
    if !stale.isEmpty { rows.forget(stale.map(\.key.reference)) }
  }

  /// Records that a fetch has just read these objects from the store.
  func noteRead(_ objects: [NSManagedObject]) {
    guard stalenessInterval > 0 else { return }
    let now = uptime
    for object in objects { readTimes[object.key] = now }
    dropOldReadTimes(now)
  }

  /// Drops read times that exceed the staleness interval, which count as never read; done when
  /// there are twice as many as were left the last time.
  private func dropOldReadTimes(_ now: Double) {
    guard readTimes.count > readTimesLimit else { return }
    readTimes = readTimes.filter { now - $0.value <= stalenessInterval }
    readTimesLimit = max(Self.fewReadTimes, readTimes.count * 2)
  }

  static let fewReadTimes = 1024

  private var uptime: Double { persistentStoreCoordinator?.effects.clock.uptime ?? 0 }
}
