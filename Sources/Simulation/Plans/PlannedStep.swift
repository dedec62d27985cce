/// One step of a plan: an action, and the time since the step before.
package struct PlannedStep: Hashable, Sendable, Codable {
  /// Seconds after the step before.
  package var delay: Double
  package var action: StepAction

  package init(_ delay: Double, _ action: StepAction) {
    self.delay = delay
    self.action = action
  }
}

/// The kinds of steps.
///
/// Devices are named by their index in the plan.
package enum StepAction: Hashable, Sendable, Codable {
  /// The app saves changes in one of its contexts: 0 is a new context, other numbers name contexts
  /// that are kept.
  case save(device: Int, context: Int, changes: [AppChange])
  /// The user starts a sync in the app.
  case sync(device: Int)
  case offline(device: Int)
  case online(device: Int)
  /// The app's process is killed after `afterJobs` jobs, and launched `launchAfter` seconds later.
  case kill(device: Int, afterJobs: Int, launchAfter: Double)
  /// The app quits in the regular way.
  case quit(device: Int)
  case launch(device: Int)
  /// All machines sleep for `days` days.
  case leap(days: Double)
  /// The server's process is killed, and started again after `startAfter` seconds.
  case killServer(startAfter: Double)
  case backUpServer
  /// The server is replaced with its backup, in a new incarnation.
  case restoreServer
  case backUp(device: Int)
  /// The device is replaced with its backup.
  case restore(device: Int)
  /// The app and its data are deleted, and it is installed again.
  case reinstall(device: Int)
  /// The user deletes the app's data in the cloud.
  case deleteZone(person: Int)
  /// The server restarts with a quota that every user has reached, or without a quota.
  case quota(isReached: Bool)
  case signOut(device: Int)
  case signIn(device: Int)
  /// Another user signs in on the device for a time.
  case signInOther(device: Int)
  /// The device's wall clock is set `offset` seconds ahead of the simulated time.
  case setClock(device: Int, offset: Double)
  /// The server's wall clock is set `offset` seconds ahead of the simulated time.
  case setServerClock(offset: Double)
  /// A new version of the app, with renamed entities and attributes.
  case upgrade(device: Int)
  /// The former version of the app is installed again; it may be unable to open the store.
  case downgrade(device: Int)
  /// The server removes expired tombstones and kept replies.
  case collectTraces
  /// The app deletes its persistent history.
  case deleteHistory(device: Int)

  /// The name of the kind, for counts.
  package var kind: String {
    switch self {
    case .save: "save"
    case .sync: "sync"
    case .offline: "offline"
    case .online: "online"
    case .kill: "kill"
    case .quit: "quit"
    case .launch: "launch"
    case .leap: "leap"
    case .killServer: "server kill"
    case .backUpServer: "server backup"
    case .restoreServer: "server restore"
    case .backUp: "device backup"
    case .restore: "device restore"
    case .reinstall: "reinstall"
    case .deleteZone: "zone deleted"
    case .quota(let isReached): isReached ? "quota reached" : "quota lifted"
    case .signOut: "sign-out"
    case .signIn: "sign-in"
    case .signInOther: "other account"
    case .setClock: "device clock"
    case .setServerClock: "server clock"
    case .upgrade: "upgrade"
    case .downgrade: "downgrade"
    case .collectTraces: "traces collected"
    case .deleteHistory: "history deleted"
    }
  }

  /// The device of the step; nil for a step of the server or a user.
  package var device: Int? {
    switch self {
    case .save(let device, _, _), .kill(let device, _, _), .sync(let device), .offline(let device),
      .online(let device), .quit(let device), .launch(let device), .backUp(let device),
      .restore(let device), .reinstall(let device), .signOut(let device), .signIn(let device),
      .signInOther(let device), .setClock(let device, _), .upgrade(let device),
      .downgrade(let device), .deleteHistory(let device):
      device
    case .leap, .killServer, .backUpServer, .restoreServer, .deleteZone, .quota, .setServerClock,
      .collectTraces:
      nil
    }
  }
}

/// A kind of object in the simulated app, under the name of its first version.
package enum AppEntity: String, Hashable, Sendable, Codable, CaseIterable {
  case folder, item, label, photo
}

/// One edit of a save; `pick` selects one of the objects that exist at that time.
package enum AppChange: Hashable, Sendable, Codable {
  /// A new object, linked to the object that `link` selects if the entity has a fitting
  /// relationship.
  case insert(AppEntity, link: UInt32, length: Int)
  /// A new value of an attribute, of at least `length` bytes.
  case edit(AppEntity, pick: UInt32, attribute: UInt32, length: Int)
  case delete(AppEntity, pick: UInt32)
  /// An item is moved into another folder, or out of its folder.
  case move(pick: UInt32, folder: UInt32)
  /// An item gets another photo.
  case illustrate(pick: UInt32, photo: UInt32)
  /// An item gets a label, or loses it.
  case toggleLabel(pick: UInt32, label: UInt32)
}
