import CloudKitWebServices
import Foundation
import Testing

@testable import CloudKitServer

/// The limits of a request before its sender is known.
@Suite("Limits of requests")
struct RequestBoundsTests {
  static let database = "/database/1/c/development/public/records/query?ckAPIToken=a"
  static let modify = "/database/1/c/development/public/records/modify?ckAPIToken=a"

  @Test(
    "The limit of a body depends on its path and its credentials",
    arguments: [
      ("/delete-account", [:], 65_536), ("/account/sign-in", [:], 65_536),
      ("/share/x", [:], 65_536), ("/nothing", [:], 65_536), ("/", [:], 65_536),
      ("/admin/1/session/start", [:], 65_536),
      ("/admin/1/schema/import", ["authorization": "Bearer x"], 4 * 1_048_576),
      (database, [:], 1_048_576), (database + "&ckWebAuthToken=null", [:], 1_048_576),
      (database + "&ckWebAuthToken=t", [:], 4 * 1_048_576),
      (database, ["x-apple-cloudkit-request-keyid": "k"], 4 * 1_048_576),
      (modify, [:], 1_048_576), (modify + "&ckWebAuthToken=t", [:], 64 * 1_048_576),
    ] as [(String, [String: String], Int)]
  )
  func bodies(path: String, headers: [String: String], limit: Int) async throws {
    let server = try await TestServer()
    var request = WebServiceRequest(method: "POST", path: path, headers: headers)
    #expect(server.service.bodyLimit(of: request) == limit)
    request.body = Data(count: limit + 1)
    let response = await server.service.respond(to: request)
    let error = try WireCoding.decode(ErrorDictionary.self, from: response.body)
    #expect(error.reason == "request is larger than \(limit) bytes")
  }

  @Test("Only the first hundred items of a form or a query are read")
  func items() {
    let text = (0..<1000).map { "k\($0)=v" }.joined(separator: "&")
    #expect(RequestTarget.form(text).count == 100)
    #expect(RequestTarget("/x?\(text)").query["k99"] == "v")
    #expect(RequestTarget("/x?\(text)").query["k100"] == nil)
  }

  @Test(
    "Pages and calls about accounts are limited by the rate of an address, like the web services"
  )
  func rate() async throws {
    let server = try await TestServer(limits: {
      $0.requestsPerSecond = 1
      $0.requestBurst = 2
    })
    let paths = ["/sign-in", "/share/x", "/account/refresh", "/admin/1/session/start"]
    for (index, path) in paths.enumerated() {
      for number in 0..<3 {
        let response = await server.service.respond(
          to: WebServiceRequest(
            method: "POST",
            path: path,
            clientAddress: "192.0.2.\(index)"
          )
        )
        #expect((response.status == 429) == (number == 2), "\(path)")
      }
    }
  }

  @Test(
    "The networks of one site share what a few networks may send",
    arguments: ["/sign-in", database]
  )
  func rateOfASite(path: String) async throws {
    let server = try await TestServer(limits: {
      $0.requestsPerSecond = 1
      $0.requestBurst = 2
      $0.networksPerSite = 2
    })
    func ask(_ address: String) async -> Bool {
      await server.service.respond(
        to: WebServiceRequest(method: "POST", path: path, clientAddress: address)
      ).status == 429
    }
    var refusals: [Bool] = []
    for number in 1...5 { refusals.append(await ask("2001:db8:0:\(number)::1")) }
    #expect(refusals == [false, false, false, false, true])
    #expect(await !ask("2001:db8:1::1"))
    #expect(await !ask("192.0.2.1"))
  }

  @Test(
    "A sender is an IPv4 address or 64 bits of an IPv6 address, without the port",
    arguments: [
      ("192.0.2.1", "192.0.2.1:4711", true), ("192.0.2.1", "::ffff:192.0.2.1", true),
      ("192.0.2.1", "192.0.2.2", false), ("2001:db8::1", "2001:db8:0:0:ffff::", true),
      ("2001:db8::1", "[2001:db8::2]:443", true), ("2001:db8::1", "2001:db8:0:1::1", false),
      ("fe80::1%eth0", "fe80::2", true),
    ]
  )
  func senders(one: String, other: String, areSame: Bool) {
    #expect((SenderAddress(one)?.network == SenderAddress(other)?.network) == areSame)
    #expect(SenderAddress(nil) == nil)
    #expect(SenderAddress("") == nil)
  }

  @Test("A too long user name is refused without a look-up")
  func longNames() async throws {
    let server = try await TestServer()
    let name = String(repeating: "a", count: 50_000)
    for _ in 0..<20 {
      let response = await server.service.respond(
        to: WebServiceRequest(
          method: "POST",
          path: "/account/delete",
          body: Data(#"{"userName":"\#(name)","password":"x"}"#.utf8),
          clientAddress: "192.0.2.1"
        )
      )
      #expect(response.status == 401)
    }
    let counts = try server.service.storage.read { try $0.entries(DirectoryRange(.signInCount)) }
    #expect(counts.isEmpty)
  }
}
