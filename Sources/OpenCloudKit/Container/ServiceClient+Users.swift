import CloudKitWebServices
import Foundation

extension ServiceClient {
  /// The identifier of the record that stands for the person whose token is used.
  func callerRecordID() async throws(CKError) -> CKRecord.ID {
    let identity = try await call(
      .caller,
      scope: .public,
      repeatable: true,
      as: UserIdentity.self
    )
    guard let name = identity.userRecordName, !name.isEmpty else {
      throw CKError(.internalError, "The service sent a person without a record name.")
    }
    return CKRecord.ID(recordName: name)
  }
}
