import CloudKitWebServices
import Effects
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
    hub.note(device("phone"))
    for number in Int64(0)...3 {
      guard case .resync = await hub.stream("phone", after: number) else {
        Issue.record("The device did not have to fetch after number \(number).")
        continue
      }
    }
  }
}
