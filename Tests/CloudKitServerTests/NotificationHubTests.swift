import CloudKitWebServices
import Effects
import Testing

@testable import CloudKitServer

@Suite("The notifications that wait for devices")
struct NotificationHubTests {
  @Test("A device whose log was removed has to fetch when it returns with a former number")
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
    // Makes room by removing the phone, which misses what is posted then.
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
