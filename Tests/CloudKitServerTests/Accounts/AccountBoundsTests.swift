import CloudKitWebServices
import Foundation
import Testing

@testable import CloudKitServer

@Suite("Grants and schemas without end", .everyEngine)
struct AccountBoundsTests {
  @Test("An account has a limited number of signed-in devices; the longest unused is signed out")
  func grants() async throws {
    let server = try await TestServer(limits: { $0.grantsPerAccount = 3 })
    _ = try await server.person()
    let account = try server.service.storage.account(named: "ada")
    var devices: [DeviceCredentials] = []
    for number in 0..<3 {
      devices.append(
        try await server.service.sessions.startGrant(
          account: account,
          container: TestServer.container,
          device: "d\(number)"
        )
      )
      server.clock.advance(seconds: 1)
    }
    // The first is used again.
    devices[0] = try await server.service.sessions.refresh(devices[0].refreshToken)
    server.clock.advance(seconds: 1)
    let last = try await server.service.sessions.startGrant(
      account: account,
      container: TestServer.container,
      device: "d3"
    )
    let names = try server.service.sessions.devices(of: "ada").map(\.device)
    #expect(names.sorted() == ["d0", "d2", "d3"])
    func status(_ token: String) async -> Int {
      let person = Person(server: server, webAuthToken: token)
      return await person.send(.caller, Data("{}".utf8), in: .public).status
    }
    #expect(await status(devices[1].webAuthToken) != 200)
    for device in [devices[0], devices[2], last] {
      #expect(await status(device.webAuthToken) == 200)
    }
  }

  private func fields(_ range: Range<Int>) -> [String: FieldContent] {
    Dictionary(uniqueKeysWithValues: range.map { ("f\($0)", .int64(1)) })
  }

  private func refusal(
    _ name: String,
    _ fields: [String: FieldContent],
    type: String = "Note",
    _ person: Person
  ) async throws -> ErrorDictionary? {
    do {
      try await person.save(.forceUpdate, name, fields, recordType: type)
      return nil
    } catch let error as ErrorDictionary {
      return error
    }
  }

  @Test("Saves in development give a type a limited number of fields", arguments: [-1, 0, 1])
  func fieldsOfType(over: Int) async throws {
    let server = try await TestServer(limits: { $0.fieldsPerType = 6 })
    let ada = try await server.person().extended
    try await ada.makeZone()
    let once = try await refusal("a", fields(0..<(6 + over)), ada)
    #expect(once?.extension?.code == (over > 0 ? .limitExceeded : nil))
    // In two saves, and then with the fields that are there.
    #expect(try await refusal("b", fields(0..<3), type: "Other", ada) == nil)
    let more = try await refusal("b", fields(3..<(6 + over)), type: "Other", ada)
    #expect(more?.extension?.code == (over > 0 ? .limitExceeded : nil))
    #expect(try await refusal("b", fields(0..<3), type: "Other", ada) == nil)
  }

  @Test("Saves in development give a schema a limited number of types and fields")
  func types() async throws {
    let server = try await TestServer(limits: {
      $0.recordTypes = 3
      $0.fieldsPerSchema = 8
    })
    let ada = try await server.person().extended
    try await ada.makeZone()
    var made = 0
    var refused: ErrorDictionary?
    for number in 0..<4 where refused == nil {
      refused = try await refusal("r\(number)", fields(0..<2), type: "T\(number)", ada)
      if refused == nil { made += 1 }
    }
    #expect(refused?.extension?.code == .limitExceeded)
    #expect((1...3).contains(made))
    let wider = try await refusal("r0", fields(2..<9), type: "T0", ada)
    #expect(wider?.extension?.code == .limitExceeded)
    #expect(try await refusal("r0", fields(0..<2), type: "T0", ada) == nil)
  }
}
