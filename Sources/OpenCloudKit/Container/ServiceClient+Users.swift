import CloudKitWebServices
import Foundation

extension ServiceClient {
  /// The identifier of the record of the user whose token is used.
  ///
  /// The user is confirmed for the sign-in that was current when the call began.
  func callerRecordID() async throws(CKError) -> CKRecord.ID {
    // The request asks who the user is, so it names no expected user.
    let account = AccountPin(signIn: self.account.signIn, userRecordName: nil)
    let identity = try await pinned(to: account).call(
      .caller,
      scope: .public,
      repeatable: true,
      as: UserIdentity.self
    )
    guard let name = identity.userRecordName, !name.isEmpty else {
      throw CKError(.internalError, "The service sent a user without a record name.")
    }
    confirm(name, for: account)
    return CKRecord.ID(recordName: name)
  }
}
