import CloudKitWebServices
import Effects
import Synchronization
import Testing

@testable import CloudKitServer

@Suite("Queued notifications of devices")
struct NotificationHubTests {
  @Test("A device whose log was removed must fetch when it reconnects with a former number")
  func removedLog() async throws {
    let hub = NotificationHub(effects: .still, timeout: 0, deviceLimit: 1)
    func device(_ token: String) -> StoredDevice {
      StoredDevice(
        token: token,
        container: "iCloud.test",
        environment: .development,
        userRecordName: "_ada",
        clientID: nil
      )
    }
    hub.note(device("phone"))
    for _ in 0..<3 { hub.post(PushNotification(), key: nil, to: "phone") }
    // Removes the phone to make room, which then misses this notification.
    hub.note(device("tablet"))
    #expect(hub.brokenInvariants() == [])
    hub.note(device("phone"))
    for number in Int64(0)...3 {
      guard case .resync = await hub.stream("phone", after: number) else {
        Issue.record("The device did not have to fetch after number \(number).")
        continue
      }
    }
  }

  @Test("A loss ends a waiting poll, and keeps what waits for the next one")
  func lossOfPolls() async {
    let hub = NotificationHub(effects: .still, timeout: 45)
    hub.note(
      StoredDevice(
        token: "page",
        container: "iCloud.test",
        environment: .development,
        clientID: nil
      )
    )
    hub.noteListening(of: "page")
    hub.post(PushNotification(), key: nil, to: "page")
    hub.postLossToAll()
    #expect(hub.isFirstListening(of: "page"))
    if case .entries(let entries) = await hub.poll("page") {
      #expect(entries.map(\.number) == [1])
    } else {
      Issue.record("The notification was removed.")
    }
    async let waiting = hub.poll("page")
    while hub.listenerCounts.polls == 0 { await Task.yield() }
    hub.postLossToAll()
    // A poll that still waits is closed.
    hub.close()
    guard case .nothing = await waiting else {
      Issue.record("The poll waited on.")
      return
    }
  }

  @Test("Entries that are kept after a loss do not take it back")
  func entriesBeforeLoss() {
    var log = NotificationLog(startingAt: 0)
    for _ in 0..<2 { log.append(PushNotification(), key: nil, limit: 2) }
    log.lose()
    log.append(PushNotification(), key: nil, limit: 2)
    guard case .resync = log.missed(after: 2) else {
      Issue.record("The reader did not have to fetch.")
      return
    }
    #expect(log.next(after: 0)?.number == 2)
  }

  @Test("A device has a limited number of listeners; a further one ends the oldest")
  func listeners() throws {
    let hub = NotificationHub(effects: .still, timeout: 45, listenerLimit: 2)
    hub.note(
      StoredDevice(
        token: "page",
        container: "iCloud.test",
        environment: .development,
        clientID: nil
      )
    )
    let ended = Mutex<[Int]>([])
    var waits: [EventWait] = []
    for number in 0..<4 {
      waits.append(
        hub.stream("page", after: 0) { delivery in
          if case .closed = delivery { ended.withLock { $0.append(number) } }
        }
      )
    }
    #expect(ended.withLock { $0 } == [0, 1])
    hub.close()
    #expect(ended.withLock { $0.sorted() } == [0, 1, 2, 3])
  }

  @Test("A device that changes its owner, ends or makes room leaves no owner behind")
  func owners() {
    let hub = NotificationHub(effects: .still, timeout: 0, deviceLimit: 4)
    func device(_ token: Int, of user: String?) -> StoredDevice {
      StoredDevice(
        token: "\(token)",
        container: "iCloud.test",
        environment: .development,
        userRecordName: user,
        clientID: nil
      )
    }
    for number in 0..<12 {
      hub.note(device(number, of: number % 3 == 0 ? nil : "_\(number % 2)"))
      #expect(hub.brokenInvariants() == [])
      hub.note(device(number, of: number % 4 == 0 ? nil : "_\(number % 5)"))
      #expect(hub.brokenInvariants() == [])
      if number % 5 == 0 { hub.end("\(number)") }
      #expect(hub.brokenInvariants() == [])
    }
    hub.close()
    #expect(hub.brokenInvariants() == [])
  }
}
