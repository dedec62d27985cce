import CloudKitWebServices
import Foundation
import Testing

@testable import CloudKitServer

@Suite("Metrics of files, listeners and connections", .everyEngine)
struct TrafficMetricsTests {
  private func value(_ name: String, _ server: TestServer) -> Int? {
    server.service.metricsText.split(separator: "\n").first { $0.hasPrefix(name + " ") }
      .flatMap { Int($0.dropFirst(name.count + 1)) }
  }

  @Test("Bytes of files are counted as they come and go, and the stored ones by the maintenance")
  func files() async throws {
    let server = try await TestServer()
    let person = try await server.person()
    try await person.makeZone()
    let uploaded = try await person.upload(Data(count: 1000))
    try await person.save(.create, "a", ["file": .asset(uploaded)])
    let asset = try #require(try await person.lookup("a").content("file")?.assets.first)
    _ = await person.download(try #require(asset.downloadURL))
    _ = await person.download(try #require(asset.downloadURL), headers: ["range": "bytes=0-99"])
    #expect(value("watershed_asset_received_bytes_total", server) == 1000)
    #expect(value("watershed_asset_sent_bytes_total", server) == 1100)
    #expect(value("watershed_asset_bytes", server) == nil)
    try await server.service.housekeep()
    #expect(value("watershed_asset_bytes", server) == 1000)
    #expect(value("watershed_asset_files", server) == 1)
  }

  @Test("Connections to PostgreSQL are counted, and there are none with SQLite")
  func connections() async throws {
    let server = try await TestServer()
    let isServer = TestEngine.current == .postgreSQL
    let idle = value("watershed_postgresql_connections{state=\"idle\"}", server)
    #expect((idle != nil) == isServer)
    let opened = value("watershed_postgresql_connections_opened_total", server)
    #expect((opened ?? 0 > 0) == isServer)
    if isServer { #expect(value("watershed_postgresql_connections{state=\"used\"}", server) == 0) }
  }

  @Test("Waiting streams and polls are counted until they end")
  func listeners() throws {
    let hub = NotificationHub(effects: .live, timeout: 60)
    hub.note(
      StoredDevice(
        token: "t",
        container: "c",
        environment: .development,
        userRecordName: "_u",
        clientID: nil
      )
    )
    #expect(hub.listenerCounts.streams == 0)
    let wait = hub.stream("t", after: 0) { _ in }
    #expect(hub.listenerCounts.streams == 1)
    #expect(hub.listenerCounts.polls == 0)
    wait.cancel()
    #expect(hub.listenerCounts.streams == 0)
    hub.close()
  }
}
