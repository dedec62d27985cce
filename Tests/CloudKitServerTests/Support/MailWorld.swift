import CloudKitWebServices
import Foundation
import Testing

@testable import CloudKitServer

/// A server that sends mail.
struct MailWorld {
  let outbox = TestOutbox()
  let server: TestServer

  var service: CloudKitService { server.service }

  init(
    registration: RegistrationPolicy = .open,
    limits: (inout ServiceLimits) -> Void = { _ in }
  ) async throws {
    server = try await TestServer(
      limits: limits,
      registration: registration,
      baseURL: "https://cloud.example.org",
      mailSender: outbox
    )
  }

  /// The mails sent so far, after the queue is idle.
  func mails() async -> [MailMessage] {
    await service.mails.queue?.finishWork()
    return outbox.take()
  }

  func post(
    _ path: String,
    _ form: String = "",
    from address: String? = nil
  ) async -> (status: Int, html: String) {
    let reply = await service.respond(
      to: WebServiceRequest(
        method: "POST",
        path: path,
        headers: ["host": "cloud.example.org"],
        body: Data(form.utf8),
        clientAddress: address
      )
    )
    return (reply.status, String(decoding: reply.body, as: UTF8.self))
  }

  func get(_ path: String) async -> Int {
    await service.respond(
      to: WebServiceRequest(method: "GET", path: path, headers: ["host": "cloud.example.org"])
    ).status
  }

  func forgot(_ name: String, from address: String? = nil) async -> (status: Int, html: String) {
    await post("/forgot-password", "user=\(WebServicePath.escape(name))", from: address)
  }

  func confirm(_ link: String, password: String = "secret") async -> Int {
    await post(link, "password=\(password)").status
  }

  func verifiedAddress(_ name: String) throws -> String? {
    let account = try service.storage.account(named: name)
    return try service.storage.read { try $0.verifiedAddress(of: account) }
  }

  func opens(_ name: String, _ password: String) async -> Bool {
    (try? await service.passwords.check(userName: name, password: password, from: nil)) != nil
  }
}
