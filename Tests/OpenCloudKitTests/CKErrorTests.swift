import Foundation
import Testing

import OpenCloudKit

@Suite("Errors")
struct CKErrorTests {
  @Test("An error is an NSError with Apple's domain, code and keys")
  func bridging() {
    let error = CKError(.requestRateLimited, userInfo: [CKErrorRetryAfterKey: 3.0])
    let bridged = error as NSError
    #expect(bridged.domain == "CKErrorDomain")
    #expect(bridged.code == 7)
    #expect(error.retryAfterSeconds == 3)
    #expect(CKError(_nsError: bridged).code == .requestRateLimited)
    #expect(CKError.Code(rawValue: 14) == .serverRecordChanged)
  }

  @Test("A catch clause can name the code")
  func pattern() {
    do {
      throw CKError(.zoneNotFound, "No zone z.")
    } catch CKError.zoneNotFound {
    } catch {
      Issue.record("caught the wrong clause: \(error)")
    }
  }

  @Test("Records and partial errors are found under Apple's keys")
  func userInfo() {
    let record = CKRecord(recordType: "T")
    let item = CKError(.serverRecordChanged, "newer")
      .adding(CKRecordChangedErrorServerRecordKey, record)
    #expect(item.serverRecord === record)
    #expect(item.clientRecord == nil)
    let whole = CKError(
      .partialFailure,
      userInfo: [CKPartialErrorsByItemIDKey: [record.recordID: item] as [AnyHashable: any Error]]
    )
    #expect((whole.partialErrorsByItemID?[record.recordID] as? CKError)?.code == item.code)
    #expect(whole.description.contains("Partial Failure"))
  }
}
