import Foundation

extension NSManagedObjectContext {
  /// Drops cached rows that are older than the app allows, before they are asked for.
  func forgetStale(_ objects: [NSManagedObject], in rows: any RowStore) {
    guard stalenessInterval >= 0 else { return }
    guard stalenessInterval > 0 else { return rows.forget(objects.map(\.key.reference)) }
    let now = uptime
    let stale = objects.filter { object in
      readTimes[object.key].map { now - $0 > stalenessInterval } ?? true
    }
    for object in stale { readTimes[object.key] = now }
    if !stale.isEmpty { rows.forget(stale.map(\.key.reference)) }
  }

  /// A fetch has just read these objects from the store.
  func noteRead(_ objects: [NSManagedObject]) {
    guard stalenessInterval > 0 else { return }
    let now = uptime
    for object in objects { readTimes[object.key] = now }
  }

  private var uptime: Double { persistentStoreCoordinator?.effects.clock.uptime ?? 0 }
}
