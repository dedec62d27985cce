import CloudKitMirroring
import CloudKitServer
import CloudKitServerHTTP
import Effects
import Foundation
import OpenCloudKit
import OpenCoreData

/// A server on a loopback port, one user, and that user's two devices.
final class DemoWorld: Sendable {
  let reporter: DemoReporter
  let server: DemoServer
  let phone: DemoDevice
  let laptop: DemoDevice
  private let changes: DemoSignal

  /// The longest wait of the demo before it fails, in seconds.
  ///
  /// Generous: it ends a demo that hangs, and is no measure of speed.
  private static let patience = 120.0

  init(model: DemoModel, folder: URL, reporter: DemoReporter) async throws {
    self.reporter = reporter
    server = try await DemoServer.start(folder: folder, name: model.name)
    reporter.report(
      "server",
      "serves",
      "\(server.url.absoluteString), SQLite in \(server.folder.path)",
      lines: ["container \(server.containerIdentifier)"]
    )
    changes = DemoSignal()
    phone = try await Self.device("phone", model, server, folder, reporter)
    laptop = try await Self.device("laptop", model, server, folder, reporter)
    changes.listen(to: [phone, laptop])
  }

  private static func device(
    _ name: String,
    _ model: DemoModel,
    _ server: DemoServer,
    _ folder: URL,
    _ reporter: DemoReporter
  ) async throws -> DemoDevice {
    let link = SwitchableLink(HTTPTransport(baseURL: server.url))
    let cloud = CKContainer(
      identifier: server.containerIdentifier,
      configuration: try await server.signIn(),
      transport: link,
      effects: .live
    )
    let device = try DemoDevice(
      name: name,
      model: model,
      cloud: cloud,
      link: link,
      folder: folder
    )
    reporter.report(name, "signed in", "as \(server.personName); store \(device.storeURL.path)")
    DemoJournal.follow(device, reporter)
    return device
  }

  /// Waits until the condition holds; it is checked after each change on a device.
  func until(_ what: String, _ condition: () async throws -> Bool) async throws {
    let start = reporter.elapsed
    while try await !condition() {
      guard reporter.elapsed - start < Self.patience * 1000 else {
        let lines = try await differences()
        reporter.report("demo", "differ", "timed out waiting until \(what)", lines: lines)
        throw DemoFailure("The demo timed out waiting until \(what).")
      }
      await changes.next()
    }
  }

  /// Waits until nothing is left to export and both devices have equal contents.
  func converge(_ what: String) async throws {
    try await until(what) {
      let phoneIsSettled = try await phone.isSettled()
      let laptopIsSettled = try await laptop.isSettled()
      guard phoneIsSettled, laptopIsSettled else { return false }
      return try await differences().isEmpty
    }
  }

  /// The current differences between the two devices.
  func differences() async throws -> [String] {
    GraphSnapshot.differences(
      try await phone.snapshot(),
      try await laptop.snapshot(),
      names: ("phone", "laptop")
    )
  }

  /// Compares the two stores object by object and prints the result in one line.
  func compare() async throws {
    try await converge("both stores are the same")
    let snapshot = try await phone.snapshot()
    reporter.chapter("The two stores, object by object")
    reporter.report(
      "demo",
      "same",
      "Same on both devices: \(snapshot.objectCount) objects, \(snapshot.valueCount) values, "
        + "\(snapshot.linkCount) links.",
      count: snapshot.objectCount
    )
  }

  /// The server's records of edges.
  func edgeRecords(limit: Int) async throws -> [CKRecord] {
    let zone = CKRecordZone.ID(
      zoneName: "com.apple.coredata.cloudkit.zone",
      ownerName: CKCurrentUserDefaultName
    )
    let database = phone.cloud.privateCloudDatabase
    let changes = try await database.recordZoneChanges(inZoneWith: zone, since: nil)
    let records = changes.modificationResultsByID.values
      .compactMap { try? $0.get().record }
      .filter { $0.recordType == "CDMR" }
      .sorted { $0.recordID.recordName < $1.recordID.recordName }
    return Array(records.prefix(limit))
  }

  /// Stops the mirroring, then the server.
  func stop() async {
    for device in [phone, laptop] { await device.stop() }
    await server.stop()
  }
}
