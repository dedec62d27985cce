import CloudKitWebServices
import Foundation
import OpenCloudKit
import Synchronization
import Testing

@Suite("Accounts")
struct AccountTests {
  private let service = ScriptedService()

  @Test("Without a token the account status is noAccount, and no request is sent")
  func signedOut() async throws {
    let container = service.container(webAuthToken: nil)
    #expect(try await container.accountStatus() == .noAccount)
    await #expect(throws: CKError.self) { try await container.userRecordID() }
    #expect(service.requests.isEmpty)
  }

  @Test("A confirmed user stays available while the service is unreachable")
  func available() async throws {
    service.answer("{\"userRecordName\":\"_me\"}")
    let container = service.container()
    #expect(try await container.accountStatus() == .available)
    #expect(try await container.accountStatus() == .available)
    #expect(service.requests.count == 2)
    #expect(service.requests[0].path.contains("/public/users/caller"))
    #expect(service.requests[0].method == "GET")
  }

  @Test(
    "An unreachable service gives couldNotDetermine, and a refused token an account that is unavailable"
  )
  func undetermined() async throws {
    let container = service.container()
    #expect(try await container.accountStatus() == .couldNotDetermine)
    service.answer(
      "{\"serverErrorCode\":\"AUTHENTICATION_REQUIRED\",\"redirectURL\":\"http://sign.in\"}",
      status: 421
    )
    #expect(try await container.accountStatus() == .temporarilyUnavailable)
    try container.setWebAuthToken(nil)
    #expect(try await container.accountStatus() == .noAccount)
  }

  @Test("The error of a refused token contains the sign-in page's URL")
  func signInPage() async throws {
    service.answer(
      "{\"serverErrorCode\":\"AUTHENTICATION_REQUIRED\",\"redirectURL\":\"http://sign.in\"}",
      status: 421
    )
    let container = service.container()
    let error = await #expect(throws: CKError.self) { try await container.userRecordID() }
    #expect(error?.signInURL == "http://sign.in")
  }

  @Test("A renewed token is used for the next call, unless the tokens were replaced meanwhile")
  func renewal() async throws {
    let container = service.container(webAuthToken: "one")
    service.answer(
      "{\"userRecordName\":\"_me\"}",
      headers: ["x-apple-cloudkit-web-auth-token": "two"]
    )
    _ = try await container.userRecordID()
    #expect(try container.client().webAuthToken == "two")
    service.answer { _ in
      try container.setWebAuthToken("other person")
      return WebServiceResponse(
        status: 200,
        headers: ["x-apple-cloudkit-web-auth-token": "three"],
        body: Data("{\"userRecordName\":\"_me\"}".utf8)
      )
    }
    _ = try await container.userRecordID()
    #expect(service.requests[1].path.contains("ckWebAuthToken=two"))
    #expect(try container.client().webAuthToken == "other person")
  }

  @Test("Signing in and out posts CKAccountChanged on a thread that the caller does not wait for")
  func announcement() async throws {
    let container = service.container(webAuthToken: "one")
    let (notes, feed) = AsyncStream.makeStream(of: String?.self)
    let isHeld = DispatchSemaphore(value: 0)
    let observer = NotificationCenter.default.addObserver(
      forName: .CKAccountChanged,
      object: container,
      queue: nil
    ) { _ in
      // Waits until both calls have returned: on a caller's thread that would be for ever.
      isHeld.wait()
      isHeld.signal()
      feed.yield(try? container.client().webAuthToken)
    }
    defer { NotificationCenter.default.removeObserver(observer) }
    try container.setWebAuthToken("two")
    try container.setWebAuthToken("two")
    try container.setWebAuthToken(nil)
    isHeld.signal()
    var iterator = notes.makeAsyncIterator()
    #expect(await iterator.next() == .some(nil))
    #expect(await iterator.next() == .some(nil))
  }

  @Test("A sync engine's observer is called before the account's change returns")
  func engines() throws {
    let container = service.container(webAuthToken: "one")
    let seen = Mutex(0)
    let number = AccountNotices.shared.add { other in
      if other === container { seen.withLock { $0 += 1 } }
    }
    defer { AccountNotices.shared.remove(number) }
    try container.setWebAuthToken("two")
    #expect(seen.withLock { $0 } == 1)
  }
}
