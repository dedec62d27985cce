import Testing

@testable import CloudKitServer

@Suite("Devices whose batches have numbers")
struct SequenceDeviceTests {
  private let devices = SequenceDevices()
  private let id = PartitionID(rawValue: 1)

  @Test("A device is due until a commit has recorded it, and an hour later again")
  func due() {
    // A decision whose commit fails notes nothing: the next one records the device.
    for _ in 0..<2 { #expect(devices.isDue(id, "_u", "d", now: 0)) }
    devices.note(id, "_u", "d", now: 0, limit: 2)
    #expect(!devices.isDue(id, "_u", "d", now: 3_599_999))
    #expect(devices.isDue(id, "_u", "d", now: 3_600_000))
    #expect(devices.isDue(id, "_v", "d", now: 0))
  }

  @Test("A device that others have replaced is due again")
  func replaced() {
    for device in ["a", "b", "c"] { devices.note(id, "_u", device, now: 0, limit: 2) }
    #expect(devices.isDue(id, "_u", "a", now: 0))
    #expect(!devices.isDue(id, "_u", "c", now: 0))
    devices.forget(id, "_u", "c")
    #expect(devices.isDue(id, "_u", "c", now: 0))
  }
}
