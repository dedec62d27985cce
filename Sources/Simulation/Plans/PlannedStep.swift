/// Something that happens in a world at a time of the plan.
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
  /// The app saves changes in one of its contexts: 0 is a new one, others stay.
  case save(device: Int, context: Int, changes: [AppChange])
  /// The person asks the app to sync.
  case sync(device: Int)
  case offline(device: Int)
  case online(device: Int)
  /// The app's process ends after so many jobs, and is launched later.
  case kill(device: Int, afterJobs: Int, launchAfter: Double)
  /// The app ends by itself.
  case quit(device: Int)
  case launch(device: Int)
  /// All machines sleep for so many days.
  case leap(days: Double)
  /// The server's process ends and is started again after so many seconds.
  case killServer(startAfter: Double)
  case backUpServer
  /// The server is replaced with its backup, in a new incarnation.
  case restoreServer
  case backUp(device: Int)
  /// The device is replaced with its backup.
  case restore(device: Int)
  /// The app and its data are deleted, and it is installed again.
  case reinstall(device: Int)
  /// The person deletes the app's data in the cloud.
  case deleteZone(person: Int)
  /// The server restarts with no more room for a person's data, or with room again.
  case quota(isReached: Bool)
  case signOut(device: Int)
  case signIn(device: Int)
  /// Another person signs in on the device for a while.
  case signInOther(device: Int)
  /// The device's wall clock is set so many seconds ahead of the true time.
  case setClock(device: Int, offset: Double)
  /// The server's wall clock is set so many seconds ahead of the true time.
  case setServerClock(offset: Double)
  /// A new version of the app, with renamed entities and attributes.
  case upgrade(device: Int)
  /// The former version is installed again; it may not be able to open the store.
  case downgrade(device: Int)
  /// The server forgets old deletions and kept replies.
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

  /// The device that the step is about; nil where it is about the server or a person.
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

/// The edits of one save of the app; a pick chooses among the objects that exist at that time.
package enum AppChange: Hashable, Sendable, Codable {
  /// A new object, linked to a picked one where it can be.
  case insert(AppEntity, link: UInt32, length: Int)
  /// Another value for an attribute, of at least so many bytes.
  case edit(AppEntity, pick: UInt32, attribute: UInt32, length: Int)
  case delete(AppEntity, pick: UInt32)
  /// An item goes into another folder, or out of all.
  case move(pick: UInt32, folder: UInt32)
  /// An item gets another photo.
  case illustrate(pick: UInt32, photo: UInt32)
  /// An item gets a label, or loses it.
  case toggleLabel(pick: UInt32, label: UInt32)
}
