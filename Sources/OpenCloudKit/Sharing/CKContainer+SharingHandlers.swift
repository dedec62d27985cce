import Foundation

// The methods with completion handlers.
extension CKContainer {
  /// Fetches the metadata of the share that a link identifies.
  public func fetchShareMetadata(
    with url: URL,
    completionHandler: @escaping @Sendable (CKShare.Metadata?, (any Error)?) -> Void
  ) {
    complete(completionHandler) { try await $0.shareMetadata(for: url) }
  }

  /// Fetches the metadata of the shares that links identify; each link has a result of its own.
  public func fetchShareMetadatas(
    for urls: [URL],
    completionHandler:
      @escaping @Sendable (Result<[URL: Result<CKShare.Metadata, any Error>], any Error>) -> Void
  ) {
    complete(result: completionHandler) { try await $0.shareMetadatas(for: urls) }
  }

  /// Accepts an invitation.
  public func accept(
    _ metadata: CKShare.Metadata,
    completionHandler: @escaping @Sendable (CKShare?, (any Error)?) -> Void
  ) {
    complete(completionHandler) { try await $0.accept(metadata) }
  }

  /// Accepts invitations; each has a result of its own.
  public func accept(
    _ metadatas: [CKShare.Metadata],
    completionHandler:
      @escaping @Sendable (
        Result<[CKShare.Metadata: Result<CKShare, any Error>], any Error>
      ) -> Void
  ) {
    complete(result: completionHandler) { try await $0.accept(metadatas) }
  }

  /// Fetches a participant to add to a share, found by an email address.
  public func fetchShareParticipant(
    withEmailAddress emailAddress: String,
    completionHandler: @escaping @Sendable (CKShare.Participant?, (any Error)?) -> Void
  ) {
    complete(completionHandler) {
      try await $0.shareParticipant(forEmailAddress: emailAddress)
    }
  }

  /// Fetches a participant to add to a share, found by a phone number.
  public func fetchShareParticipant(
    withPhoneNumber phoneNumber: String,
    completionHandler: @escaping @Sendable (CKShare.Participant?, (any Error)?) -> Void
  ) {
    complete(completionHandler) { try await $0.shareParticipant(forPhoneNumber: phoneNumber) }
  }

  /// Fetches a participant to add to a share, found by their user record.
  public func fetchShareParticipant(
    withUserRecordID userRecordID: CKRecord.ID,
    completionHandler: @escaping @Sendable (CKShare.Participant?, (any Error)?) -> Void
  ) {
    complete(completionHandler) {
      try await $0.shareParticipant(forUserRecordID: userRecordID)
    }
  }

  /// Fetches participants to add to a share, found by email addresses.
  public func fetchShareParticipants(
    forEmailAddresses emails: [String],
    completionHandler:
      @escaping @Sendable (
        Result<[String: Result<CKShare.Participant, any Error>], any Error>
      ) -> Void
  ) {
    complete(result: completionHandler) {
      try await $0.shareParticipants(forEmailAddresses: emails)
    }
  }

  /// Fetches participants to add to a share, found by phone numbers.
  public func fetchShareParticipants(
    forPhoneNumbers phoneNumbers: [String],
    completionHandler:
      @escaping @Sendable (
        Result<[String: Result<CKShare.Participant, any Error>], any Error>
      ) -> Void
  ) {
    complete(result: completionHandler) {
      try await $0.shareParticipants(forPhoneNumbers: phoneNumbers)
    }
  }

  /// Fetches participants to add to a share, found by their user records.
  public func fetchShareParticipants(
    forUserRecordIDs userRecordIDs: [CKRecord.ID],
    completionHandler:
      @escaping @Sendable (
        Result<[CKRecord.ID: Result<CKShare.Participant, any Error>], any Error>
      ) -> Void
  ) {
    complete(result: completionHandler) {
      try await $0.shareParticipants(forUserRecordIDs: userRecordIDs)
    }
  }
}
