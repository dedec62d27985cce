import CloudKitMirroring
import Effects
import Foundation
import OpenCloudKit
import OpenCoreData

/// A device of a world: a store in a folder, and an app that runs or not.
final class SimulatedDevice: @unchecked Sendable {
  // Unchecked: used by the one thread of a run.

  /// A copy of the device's data, with what the person had seen then.
  struct Backup {
    var folder: URL
    var version: Int
    var knowledge: Oracle.Knowledge
  }

  /// How far the device has come since the server lost data of its person.
  enum Loss {
    case none
    /// The app was not running then.
    case unknown
    /// The change token of its zone was this one.
    case token(Data?)
  }

  let index: Int
  let person: Int
  let name: String
  let link: SimulatedNetwork.Link
  var folder: URL
  var launches = 0
  var copies = 0
  /// The version of the app.
  var version = 1
  var webAuthToken: String?
  var backup: Backup?
  var process: SimulatedProcess?
  var container: NSPersistentCloudKitContainer?
  var cloud: CKContainer?
  var contexts: [Int: NSManagedObjectContext] = [:]
  var clockOffset = 0.0 {
    didSet { process?.clockOffset = clockOffset }
  }
  /// Values that the app has written: each value names the device and this count.
  var valueCount = 0
  var isSignedInSinceBackup = false
  /// Until the device has read from the server again, it alone may have what the server lost.
  var loss = Loss.none
  /// Whether the device's own person is signed in.
  var isSignedIn = true

  init(index: Int, person: Int, folder: URL) {
    self.index = index
    self.person = person
    name = Self.names[index % Self.names.count] + (index < Self.names.count ? "" : "\(index)")
    link = SimulatedNetwork.Link(device: index, name: name)
    self.folder = folder
  }

  private static let names = ["phone", "pad", "watch", "mac", "tv"]

  var isRunning: Bool { container != nil }

  var storeURL: URL { folder.appendingPathComponent("store.sqlite") }

  var mirror: StoreMirror? { container?.storeMirrors.first }

  func nextValue() -> String {
    valueCount += 1
    return "\(name)#\(valueCount)"
  }

  /// One of the app's contexts: 0 is a new one each time, others live as long as the process.
  func context(_ number: Int) -> NSManagedObjectContext? {
    guard let container else { return nil }
    if number != 0, let known = contexts[number] { return known }
    let made = container.newBackgroundContext()
    made.mergePolicy = NSMergePolicy.mergeByPropertyObjectTrump
    if number != 0 {
      made.automaticallyMergesChangesFromParent = number == 1
      contexts[number] = made
    }
    return made
  }

  /// The state that a user would see on the device.
  func state() throws -> AppState? {
    guard let container else { return nil }
    let context = container.newBackgroundContext()
    return try context.performAndWait { try AppState(context, version: version) }
  }

  /// The state in the store of an app that is not running.
  func storedState() throws -> AppState? {
    guard FileManager.default.fileExists(atPath: storeURL.path) else { return nil }
    let coordinator = NSPersistentStoreCoordinator(managedObjectModel: AppModel.managed(version))
    let store = try coordinator.addPersistentStore(
      ofType: NSSQLiteStoreType,
      configurationName: nil,
      at: storeURL,
      options: [NSReadOnlyPersistentStoreOption: true]
    )
    let context = NSManagedObjectContext(concurrencyType: .privateQueueConcurrencyType)
    context.persistentStoreCoordinator = coordinator
    let state = try context.performAndWait { try AppState(context, version: version) }
    try coordinator.remove(store)
    return state
  }

  /// The writes that the recovery list holds.
  func recoveredWrites() throws -> Set<String> {
    guard let mirror else { return [] }
    let edits = try mirror.read { try $0.recoveredEdits(limit: 100_000) }
    var found: Set<String> = []
    for edit in edits {
      for value in edit.fields.values.values {
        let text: String
        switch value {
        case .string(let string): text = string
        case .data(let data): text = String(decoding: data, as: UTF8.self)
        default: continue
        }
        if let write = AppValue.write(in: text) { found.insert(write) }
      }
    }
    return found
  }

  /// Notes that the server has lost data.
  func noteLoss() throws {
    guard let mirror else { return loss = .unknown }
    loss = .token(try mirror.read { try $0.zone(MirrorNames.zone).token })
  }

  /// Whether the device has read from the server since that lost data.
  func hasReadSinceLoss() throws -> Bool {
    switch loss {
    case .none: return true
    case .unknown: return false
    case .token(let token):
      guard let zone = try mirror?.read({ try $0.zone(MirrorNames.zone) }),
        let present = zone.token, present != token, zone.isSaved, zone.rereading == nil
      else { return false }
      loss = .none
      return true
    }
  }

  /// Whether anything that was saved here has still to reach the server.
  func hasUnsentChanges() throws -> Bool {
    guard let mirror else { return true }
    return try mirror.write(MirrorAuthor.setup) { session in
      try session.foldHistory()
      return try session.metadata.pendingCount() > 0 || session.metadata.parkedCount() > 0
        || session.metadata.openBatch() != nil
    }
  }
}
