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

  /// Whether other users of the container find the user.
  struct Discoverability: Decodable, Sendable {
    var isDiscoverable: Bool
    /// Whether the user has said so.
    var isDecided: Bool
  }

  private struct Consent: Encodable {
    var isGranted: Bool?
  }

  /// The user's stored consent to be discovered, after updating it with `isGranted` if given.
  ///
  /// Nil if the service has no such call.
  func discoverability(granting isGranted: Bool? = nil) async throws(CKError) -> Discoverability? {
    guard let token = webAuthToken else { return nil }
    do {
      return try await account(
        "discoverability",
        Consent(isGranted: isGranted),
        userToken: token
      )
    } catch  where error.isTransient || error.code == .notAuthenticated {
      throw error
    } catch {
      return nil
    }
  }
}
