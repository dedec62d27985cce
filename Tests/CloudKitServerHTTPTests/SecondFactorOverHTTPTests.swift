import CloudKitWebServices
import Foundation
import OpenCloudKit
import Testing

@testable import CloudKitServer

/// Our own client with an account that has a second factor.
@Suite("A second factor over HTTP")
struct SecondFactorOverHTTPTests {
  @Test("An app gets an exact error code when a code is required, and signs in with it")
  func signIn() async throws {
    try await withTemporaryFolder { folder in
      try await TestCloud.run(in: folder) { cloud in
        let service = cloud.service
        let account = try service.storage.account(named: TestCloud.userName)
        _ = try await service.secondFactors.begin(of: account)
        let sealed = try service.storage.read {
          try $0.secondFactor(of: account.id, now: service.now)?.0.sealedSecret
        }
        let secret = try service.vault.open(
          try #require(sealed),
          for: "second factor \(account.id)"
        )
        let step = TimeCode.step(at: service.now)
        let codes = try await service.secondFactors.confirm(
          of: account,
          code: TimeCode.code(secret, step: step),
          from: nil
        )
        let container = CKContainer(
          identifier: TestCloud.container,
          configuration: CKContainerConfiguration(
            url: URL(string: cloud.url),
            apiToken: cloud.apiToken
          ),
          clientIdentifier: "phone",
          retries: .interactive
        )
        func refusal(_ password: String, _ code: String?) async -> CKError? {
          await #expect(throws: CKError.self) {
            try await container.signIn(
              userName: TestCloud.userName,
              password: password,
              code: code
            )
          }
        }
        let needed = await refusal(TestCloud.password, nil)
        #expect(needed?.needsSecondFactorCode == true)
        #expect(needed?.code == .notAuthenticated)
        #expect(await refusal(TestCloud.password, "000000x")?.needsSecondFactorCode == false)
        #expect(await refusal("wrong", nil)?.needsSecondFactorCode == false)
        try await container.signIn(
          userName: TestCloud.userName,
          password: TestCloud.password,
          code: codes[0]
        )
        #expect(try await container.accountStatus() == .available)
      }
    }
  }
}
