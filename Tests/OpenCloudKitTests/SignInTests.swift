import CloudKitServer
import CloudKitWebServices
import Effects
import Foundation
import OpenCloudKit
import Synchronization
import Testing

/// Sign-in to the service by programs, with a simulated clock.
@Suite("Signing in")
struct SignInTests {
  /// A clock whose sleeps take no time, and that runs a step during each.
  private final class SteppedClock: EffectClock {
    private let seconds = Mutex(0.0)
    private let pending = Mutex<[@Sendable () async throws -> Void]>([])
    private let waits = Mutex<[Double]>([])

    var now: Date { Date(timeIntervalSince1970: 1_700_000_000 + uptime) }
    var uptime: Double { seconds.withLock { $0 } }
    var slept: [Double] { waits.withLock { $0 } }

    func leap(days: Double) { seconds.withLock { $0 += days * 86_400 } }

    /// Sets the steps to run during the next sleeps, one for each.
    func during(_ steps: [@Sendable () async throws -> Void]) { pending.withLock { $0 = steps } }

    func sleep(seconds span: Double) async throws {
      try Task.checkCancellation()
      seconds.withLock { $0 += span }
      waits.withLock { $0.append(span) }
      let step = pending.withLock { $0.isEmpty ? nil : $0.removeFirst() }
      try await step?()
    }
  }

  private final class Cloud: Sendable {
    let clock = SteppedClock()
    let service: CloudKitService
    let apiToken: String
    let calls = Mutex<[String]>([])

    init() async throws {
      var limits = ServiceLimits()
      limits.passwordRounds = 2
      limits.passwordRule = .any
      service = try CloudKitService(
        ServiceConfiguration(
          baseURL: "http://service.test",
          limits: limits,
          effects: Effects(
            clock: clock,
            randomness: SeededRandomness(seed: 7),
            tasks: PoolTaskSpawner()
          )
        )
      )
      apiToken = try await service.bootstrapAPIToken()
      try await service.createAccount(userName: "ada", password: "a good password")
    }

    func container(tokenFile: URL? = nil) -> CKContainer {
      CKContainer(
        identifier: "iCloud.test",
        configuration: CKContainerConfiguration(
          url: URL(string: "http://service.test"),
          apiToken: apiToken,
          webAuthTokenFile: tokenFile
        ),
        transport: InProcessTransport { [self] request in
          calls.withLock { $0.append(String(request.path.prefix { $0 != "?" })) }
          return await service.respond(to: request)
        },
        effects: Effects(
          clock: clock,
          randomness: SystemRandomness(),
          tasks: PoolTaskSpawner()
        )
      )
    }

    func count(_ path: String) -> Int { calls.withLock { $0.filter { $0 == path }.count } }

    /// Posts a form to a page, as a browser does.
    func post(_ path: String, _ form: [String: String]) async -> WebServiceResponse {
      let body = form.map { "\($0.key)=\(WebServicePath.escape($0.value))" }
      return await service.respond(
        to: WebServiceRequest(
          method: "POST",
          path: path,
          headers: ["content-type": "application/x-www-form-urlencoded"],
          body: Data(body.joined(separator: "&").utf8)
        )
      )
    }

    func allow(_ code: String, password: String = "a good password") async -> String {
      let reply = await post("/activate", ["code": code, "user": "ada", "password": password])
      return String(decoding: reply.body, as: UTF8.self)
    }
  }

  private func withFile(_ body: (URL) async throws -> Void) async throws {
    let folder = FileManager.default.temporaryDirectory
      .appendingPathComponent("sign-in-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: folder) }
    try await body(folder.appendingPathComponent("token"))
  }

  // MARK: Name and password

  @Test("A device unused for three weeks renews its tokens without the user")
  func threeWeeks() async throws {
    try await withFile { file in
      let cloud = try await Cloud()
      let phone = cloud.container(tokenFile: file)
      #expect(try await phone.accountStatus() == .noAccount)
      try await phone.signIn(userName: "ada", password: "a good password", deviceName: "phone")
      #expect(try await phone.accountStatus() == .available)
      let zone = CKRecordZone(zoneName: "notes")
      try await phone.privateCloudDatabase.save(zone)
      let first = try #require(try TokenFile(file).read())
      cloud.clock.leap(days: 21)
      let record = CKRecord(
        recordType: "Note",
        recordID: CKRecord.ID(recordName: "n", zoneID: zone.zoneID)
      )
      try await phone.privateCloudDatabase.save(record)
      let second = try #require(try TokenFile(file).read())
      #expect(second.webAuthToken != first.webAuthToken)
      #expect(second.refreshToken != first.refreshToken)
      // The next launch loads the stored tokens, even after a long time.
      cloud.clock.leap(days: 21)
      let restarted = cloud.container(tokenFile: file)
      #expect(try await restarted.privateCloudDatabase.record(for: record.recordID)["x"] == nil)
      #expect(cloud.count("/account/refresh") == 2)
    }
  }

  @Test("Concurrent calls with an expired token renew it once")
  func once() async throws {
    let cloud = try await Cloud()
    let phone = cloud.container()
    try await phone.signIn(userName: "ada", password: "a good password")
    cloud.clock.leap(days: 1)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<8 {
        group.addTask {
          try await phone.privateCloudDatabase.save(CKRecordZone(zoneName: "z\(number)"))
        }
      }
      try await group.waitForAll()
    }
    #expect(cloud.count("/account/refresh") == 1)
  }

  @Test("Two processes that share a token file renew tokens without a theft alarm")
  func twoProcesses() async throws {
    try await withFile { file in
      let cloud = try await Cloud()
      let one = cloud.container(tokenFile: file)
      try await one.signIn(userName: "ada", password: "a good password")
      let two = cloud.container(tokenFile: file)
      for _ in 0..<3 {
        cloud.clock.leap(days: 1)
        _ = try await one.userRecordID()
        cloud.clock.leap(days: 1)
        _ = try await one.userRecordID()
      }
      cloud.clock.leap(days: 1)
      #expect(try await two.userRecordID() == one.userRecordID())
    }
  }

  @Test("A sign-in with a wrong password fails with notAuthenticated")
  func wrongPassword() async throws {
    let cloud = try await Cloud()
    let phone = cloud.container()
    let error = await #expect(throws: CKError.self) {
      try await phone.signIn(userName: "ada", password: "wrong")
    }
    #expect(error?.code == .notAuthenticated)
    #expect(try await phone.accountStatus() == .noAccount)
  }

  @Test("Signing out ends the session at the service and empties the token file")
  func signOut() async throws {
    try await withFile { file in
      let cloud = try await Cloud()
      let phone = cloud.container(tokenFile: file)
      try await phone.signIn(userName: "ada", password: "a good password")
      let tokens = try #require(try TokenFile(file).read())
      try await phone.signOut()
      #expect(try TokenFile(file).read() == nil)
      #expect(try await phone.accountStatus() == .noAccount)
      try TokenFile(file).write(tokens)
      let other = cloud.container(tokenFile: file)
      #expect(try await other.accountStatus() == .temporarilyUnavailable)
      #expect(try cloud.service.sessions.devices(of: "ada").isEmpty)
    }
  }

  @Test("A sign-in by another process that shares the token file shows in the account status")
  func otherProcess() async throws {
    try await withFile { file in
      let cloud = try await Cloud()
      let waiting = cloud.container(tokenFile: file)
      #expect(try await waiting.accountStatus() == .noAccount)
      try await cloud.container(tokenFile: file)
        .signIn(userName: "ada", password: "a good password")
      #expect(try await waiting.accountStatus() == .available)
    }
  }

  @Test("A device signed out by an administrator keeps its account, and renews its token only once")
  func revoked() async throws {
    let cloud = try await Cloud()
    let phone = cloud.container()
    try await phone.signIn(userName: "ada", password: "a good password")
    try await cloud.service.sessions.signOutEverywhere("ada")
    for _ in 0..<3 { #expect(try await phone.accountStatus() == .temporarilyUnavailable) }
    #expect(cloud.count("/account/refresh") == 1)
    try? await phone.signOut()
    #expect(try await phone.accountStatus() == .noAccount)
  }

  // MARK: The device flow

  @Test("A device sign-in completes when the user types the code in a browser")
  func deviceFlow() async throws {
    try await withFile { file in
      let cloud = try await Cloud()
      let program = cloud.container(tokenFile: file)
      let signIn = try await program.beginDeviceSignIn(deviceName: "laptop <1>")
      #expect(signIn.userCode.wholeMatch(of: /[B-Z]{4}-[B-Z]{4}/) != nil)
      #expect(signIn.verificationURL.absoluteString == "http://service.test/activate")
      #expect(signIn.completeVerificationURL.query == "user_code=\(signIn.userCode)")
      cloud.clock.during([
        {},
        {
          let page = await cloud.post("/activate", ["code": signIn.userCode.lowercased()])
          let text = String(decoding: page.body, as: UTF8.self)
          #expect(text.contains("laptop &lt;1&gt;"))
          #expect(text.contains("iCloud.test"))
        },
        { #expect(await cloud.allow(signIn.userCode, password: "wrong").contains("is wrong")) },
        { #expect(await cloud.allow(signIn.userCode).contains("is signed in")) },
      ])
      try await signIn.wait()
      #expect(try await program.accountStatus() == .available)
      #expect(try TokenFile(file).read()?.refreshToken != nil)
      #expect(try cloud.service.sessions.devices(of: "ada").map(\.device) == ["laptop <1>"])
      cloud.clock.leap(days: 21)
      #expect(try await program.accountStatus() == .available)
      // A code is valid once.
      #expect(await cloud.allow(signIn.userCode).contains("has expired or was used"))
    }
  }

  @Test("A device sign-in that the user denies fails with permissionFailure")
  func denied() async throws {
    let cloud = try await Cloud()
    let program = cloud.container()
    let signIn = try await program.beginDeviceSignIn()
    _ = await cloud.post("/activate", ["code": signIn.userCode, "answer": "deny"])
    let error = await #expect(throws: CKError.self) { try await signIn.wait() }
    #expect(error?.code == .permissionFailure)
    #expect(try await program.accountStatus() == .noAccount)
  }

  @Test("A device sign-in without the code being typed fails when it expires")
  func expired() async throws {
    let cloud = try await Cloud()
    let signIn = try await cloud.container().beginDeviceSignIn()
    let error = await #expect(throws: CKError.self) { try await signIn.wait() }
    #expect(error?.code == .notAuthenticated)
    #expect(cloud.clock.now >= signIn.expirationDate)
  }

  @Test("Polling a device code too often answers slow_down, and a wrong code gets an error")
  func slowDown() async throws {
    let cloud = try await Cloud()
    let reply = await cloud.post(
      "/account/device",
      ["client_id": cloud.apiToken, "scope": "iCloud.test"]
    )
    let codes = try #require(JSONSerialization.jsonObject(with: reply.body) as? [String: Any])
    let code = try #require(codes["device_code"] as? String)
    func ask(_ code: String, client: String? = nil) async throws -> String? {
      let reply = await cloud.post(
        "/account/token",
        [
          "grant_type": "urn:ietf:params:oauth:grant-type:device_code", "device_code": code,
          "client_id": client ?? cloud.apiToken,
        ]
      )
      #expect(reply.status == 400)
      let object = try JSONSerialization.jsonObject(with: reply.body) as? [String: Any]
      return object?["error"] as? String
    }
    #expect(try await ask(code) == "authorization_pending")
    #expect(try await ask(code) == "slow_down")
    cloud.clock.leap(days: 6.0 / 86_400)
    #expect(try await ask(code) == "slow_down")
    cloud.clock.leap(days: 16.0 / 86_400)
    #expect(try await ask(code) == "authorization_pending")
    #expect(try await ask(code + "x") == "expired_token")
    #expect(try await ask(code, client: "other") == "expired_token")
    #expect(try await ask("nonsense") == "invalid_grant")
    let strange = await cloud.post("/account/device", ["client_id": "none", "scope": "c"])
    #expect(strange.status == 401)
  }

  @Test("Guessing device codes is throttled")
  func guesses() async throws {
    let cloud = try await Cloud()
    var statuses: [Int] = []
    for _ in 0..<20 { statuses.append(await cloud.post("/activate", ["code": "BBBBBBBB"]).status) }
    #expect(statuses.contains(400))
    #expect(statuses.last == ErrorDictionary(.throttled).serverErrorCode.httpStatus)
  }
}
