import Foundation
import OpenCloudKit
import Testing

@Suite("CKError and NSError")
struct ErrorBridgingTests {
  private let plain = NSError(
    domain: CKErrorDomain,
    code: CKError.Code.requestRateLimited.rawValue,
    userInfo: [CKErrorRetryAfterKey: 3.0, NSLocalizedDescriptionKey: "Too fast."]
  )

  @Test("An NSError of CloudKit's domain casts to CKError from any static type")
  func casts() throws {
    #expect((plain as? CKError)?.code == .requestRateLimited)
    let error: any Error = plain
    #expect((error as? CKError)?.retryAfterSeconds == 3)
    #expect((error as? CKError)?.localizedDescription == "Too fast.")
    let anything: Any = plain
    #expect((anything as? CKError)?.code == .requestRateLimited)
    let info: [String: Any] = [NSUnderlyingErrorKey: plain]
    #expect((info[NSUnderlyingErrorKey] as? CKError)?.code == .requestRateLimited)
    #expect(CKError(_nsError: plain).code == .requestRateLimited)
  }

  @Test("Catch clauses and switches match an NSError by CloudKit's type and codes")
  func patterns() {
    func thrown() throws { throw plain }
    do {
      try thrown()
    } catch let error as CKError where error.code == .requestRateLimited {
      #expect(error.retryAfterSeconds == 3)
    } catch {
      Issue.record("not caught as CKError")
    }
    do {
      try thrown()
    } catch CKError.requestRateLimited {
      return
    } catch {
      Issue.record("not caught by its code")
    }
  }

  @Test("Errors of other domains, and unknown codes, do not cast to CKError")
  func others() {
    let foreign: any Error = NSError(domain: NSCocoaErrorDomain, code: 2)
    #expect(foreign as? CKError == nil)
    let unknown: any Error = NSError(domain: CKErrorDomain, code: 4711)
    #expect(unknown as? CKError == nil)
    let cocoa: any Error = CocoaError(.fileNoSuchFile)
    #expect(cocoa as? CKError == nil)
    #expect(CKError(_nsError: foreign as NSError).code == .internalError)
  }

  @Test("A CKError round-trips through NSError with its domain, code and user info")
  func roundTrip() throws {
    let record = CKRecord(recordType: "Note")
    let error = CKError(
      .serverRecordChanged,
      userInfo: [CKRecordChangedErrorServerRecordKey: record]
    )
    let bridged = error as NSError
    #expect(bridged.domain == "CKErrorDomain")
    #expect(bridged.code == 14)
    let back: any Error = bridged
    #expect((back as? CKError)?.serverRecord === record)
    let erased: any Error = error
    #expect(
      (erased as NSError).userInfo[CKRecordChangedErrorServerRecordKey] as? CKRecord === record
    )
  }

  @Test("Partial errors that are NSErrors are read as CKErrors")
  func partialErrors() {
    let error = CKError(
      .partialFailure,
      userInfo: [CKPartialErrorsByItemIDKey: [CKRecord.ID(recordName: "a"): plain]]
    )
    let partial = error.partialErrorsByItemID?[CKRecord.ID(recordName: "a")]
    #expect((partial as? CKError)?.code == .requestRateLimited)
  }
}
