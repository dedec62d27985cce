import CloudKitWebServices
import Effects
import Foundation
import OpenCloudKit

extension CloudKitDatabase {
  // MARK: Records

  /// Throws where a file of the record is missing: a record without one of its values would erase
  /// that value here.
  static func record(_ record: CKRecord) throws -> CloudRecord {
    try CloudRecord(
      name: record.recordID.recordName,
      recordType: record.recordType,
      tag: record.systemFields.recordChangeTag ?? "",
      stamps: stamps(record.systemFields),
      fields: FieldBag(record.fields.compactMapValues { try mirrorValue($0.value) })
    )
  }

  static func stamps(_ system: CKRecord.SystemFields) -> RecordStamps {
    RecordStamps(
      created: system.creationDate?.timeIntervalSinceReferenceDate,
      modified: system.modificationDate?.timeIntervalSinceReferenceDate,
      creator: system.creatorUserRecordID?.recordName,
      modifier: system.lastModifiedUserRecordID?.recordName
    )
  }

  /// Returns nil for values of kinds that no attribute has.
  private static func mirrorValue(_ value: RecordValue) throws -> MirrorValue? {
    switch value {
    case .string(let text): .string(text)
    case .int64(let number): .integer(number)
    case .double(let number): .double(number)
    case .data(let data): .data(data)
    case .date(let date):
      .date(MirrorDate(secondsSince2001: date.timeIntervalSinceReferenceDate))
    case .asset(let asset): try mirrorAsset(asset.fileURL)
    case .location, .reference, .list: nil
    }
  }

  private static func mirrorAsset(_ url: URL?) throws -> MirrorValue {
    let data: Data?
    do {
      data = try url.flatMap { try FileSystem.contents(of: $0.path) }
    } catch {
      throw CloudFailure.unreachable(reason: "The file of an asset could not be read: \(error)")
    }
    guard let url, let data else {
      throw CloudFailure.unreachable(reason: "An asset's file does not exist.")
    }
    return .asset(MirrorAsset(fingerprint: MirrorFingerprint(of: data), file: url.path))
  }

  static func recordValue(_ value: MirrorValue, effects: Effects) -> RecordValue {
    switch value {
    case .string(let text): .string(text)
    case .integer(let number): .int64(number)
    case .double(let number): .double(number)
    case .date(let date):
      .date(Date(timeIntervalSinceReferenceDate: date.secondsSince2001))
    case .data(let data): .data(data)
    case .asset(let asset):
      .asset(
        CKAsset(
          fileURL: URL(fileURLWithPath: asset.file),
          storedFile: nil,
          uuid: effects.uuid()
        )
      )
    // Only base copies have fingerprints, and bases are never sent.
    case .fingerprint: .data(Data())
    }
  }

  // MARK: Errors

  func translating<Result>(_ body: () async throws -> Result) async throws -> Result {
    do {
      return try await body()
    } catch let error as CKError {
      throw Self.failure(error)
    }
  }

  static func failure(_ error: CKError) -> any Error {
    let reason = error.localizedDescription
    // A proxy's page, with any status, does not show whether the service executed the request.
    if error.isInconclusive {
      return CloudFailure.busy(reason: reason, retryAfter: error.retryAfterSeconds)
    }
    if error.isSequencePassed { return CloudFailure.alreadySettled(reason: reason) }
    switch error.code {
    case .networkUnavailable, .networkFailure, .serverResponseLost:
      return CloudFailure.unreachable(reason: reason)
    case .accountTemporarilyUnavailable: return CloudFailure.accountChanged(reason: reason)
    case .serviceUnavailable, .requestRateLimited, .zoneBusy:
      return CloudFailure.busy(reason: reason, retryAfter: error.retryAfterSeconds)
    case .quotaExceeded:
      return CloudFailure.overQuota(reason: reason)
    case .notAuthenticated: return CloudFailure.notAuthenticated(reason: reason)
    case .changeTokenExpired:
      switch error.changeTokenCause {
      case .otherIncarnation?: return CloudFailure.tokenExpired(.otherServer)
      case .otherZone?: return CloudFailure.tokenExpired(.otherZone)
      case .tooOld?: return CloudFailure.tokenExpired(.expired)
      default: return CloudFailure.tokenExpired(.unexplained)
      }
    case .zoneNotFound, .userDeletedZone: return CloudFailure.zoneMissing
    case .limitExceeded: return CloudFailure.tooLarge
    case .operationCancelled: return CancellationError()
    case .internalError, .serverRejectedRequest:
      // The error does not show that the request itself is invalid.
      return CloudFailure.busy(reason: reason, retryAfter: error.retryAfterSeconds)
    default: return CloudFailure.refused(reason: reason)
    }
  }

  static func outcome(_ error: CKError, _ operation: CloudOperation) -> CloudOutcome {
    switch error.code {
    case .serverRecordChanged:
      // A record that cannot be read completely is looked up.
      let server = error.serverRecord.flatMap { try? record($0) }
      return operation.kind == .create ? .exists(server) : .conflict(server)
    case .unknownItem: return .notFound
    case .batchRequestFailed: return .batchFailed
    case .requestRateLimited, .serviceUnavailable, .zoneBusy:
      return .later(seconds: error.retryAfterSeconds)
    default: return .refused(reason: error.localizedDescription)
    }
  }
}
