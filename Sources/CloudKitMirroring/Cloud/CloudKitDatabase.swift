import CloudKitWebServices
import Effects
import Foundation
import OpenCloudKit
import Synchronization

/// The mirroring's view of a CloudKit database, through OpenCloudKit.
///
/// Its requests are made for the user that was last confirmed: they fail if another user has signed
/// in since, even if another process changed the token file that both share.
package final class CloudKitDatabase: MirrorCloud {
  private let container: CKContainer
  private let scope: CKDatabase.Scope
  private let pin = Mutex<AccountPin?>(nil)

  package init(container: CKContainer, scope: CKDatabase.Scope) {
    self.container = container
    self.scope = scope
  }

  private var database: CKDatabase {
    let database = container.database(with: scope)
    return pin.withLock { $0 }.map(database.pinned) ?? database
  }

  private func zoneID(_ zone: String) -> CKRecordZone.ID {
    CKRecordZone.ID(zoneName: zone, ownerName: CKCurrentUserDefaultName)
  }

  // MARK: Account and set-up

  package func account() async throws -> CloudAccount {
    switch try await translating({ try await container.accountStatus() }) {
    case .available: return try await confirmedAccount()
    case .noAccount: return await confirmedAccount { .none(reason: $0) }
    case .restricted: return .restricted
    case .temporarilyUnavailable:
      return await confirmedAccount { .temporarilyUnavailable(reason: $0) }
    case .couldNotDetermine: return .undetermined
    }
  }

  /// The account if it can be used meanwhile; else what the body makes of the reason.
  private func confirmedAccount(
    else unusable: (String) -> CloudAccount
  ) async -> CloudAccount {
    do {
      return try await confirmedAccount()
    } catch {
      return unusable(MirrorErrorText.text(error))
    }
  }

  /// Reads the current user, and makes all further requests for that user.
  private func confirmedAccount() async throws -> CloudAccount {
    let confirmed = try await translating { try await container.confirmedAccount() }
    pin.withLock { $0 = confirmed }
    guard let user = confirmed.userRecordName else { return .undetermined }
    return .available(userRecordName: user)
  }

  package func saveZone(_ zone: String) async throws {
    _ = try await translating { try await database.save(CKRecordZone(zoneID: zoneID(zone))) }
  }

  package func saveSubscription(_ identifier: String) async throws {
    let subscription = CKDatabaseSubscription(subscriptionID: identifier)
    let information = CKSubscription.NotificationInfo()
    information.shouldSendContentAvailable = true
    subscription.notificationInfo = information
    _ = try await translating { try await database.save(subscription) }
  }

  // MARK: Feeds

  package func databaseChanges(after token: Data?) async throws -> CloudDatabaseChanges {
    let page = try await translating {
      try await database.changedZones(since: token.map(Self.changeToken))
    }
    return CloudDatabaseChanges(
      changedZones: page.changed.map(\.zoneName),
      deletedZones: page.deleted.map(\.zoneName),
      token: Data(page.changeToken.syncToken.utf8),
      isMoreComing: page.moreComing
    )
  }

  package func zoneChanges(
    _ zone: String,
    after token: Data?,
    limit: Int,
    keys: [String],
    includesDeleted: Bool
  ) async throws -> CloudZoneChanges {
    let page = try await translating {
      try await database.changes(
        inZone: zoneID(zone),
        since: token.map(Self.changeToken),
        desiredKeys: keys,
        resultsLimit: limit,
        includesDeleted: includesDeleted
      )
    }
    var unreadable = try Self.reasons(page.failures)
    return CloudZoneChanges(
      records: Self.whole(page.records, &unreadable),
      deletedNames: page.deletions.map(\.recordID.recordName),
      unreadable: unreadable,
      token: Data(page.changeToken.syncToken.utf8),
      isMoreComing: page.moreComing
    )
  }

  package func lookup(
    _ zone: String,
    _ names: [String],
    keys: [String]
  ) async throws -> CloudLookup {
    let zoneID = zoneID(zone)
    let found = try await translating {
      try await database.lookUp(
        names.map { CKRecord.ID(recordName: $0, zoneID: zoneID) },
        desiredKeys: keys
      )
    }
    var records: [CKRecord] = []
    var failures: [CKRecord.ID: CKError] = [:]
    for (recordID, result) in found {
      switch result {
      case .success(let record): records.append(record)
      case .failure(let error) where error.code == .unknownItem: break
      case .failure(let error): failures[recordID] = error
      }
    }
    let missing = try await translating { [records] in
      try await database.fetchFiles(of: records)
    }
    failures.merge(missing) { first, _ in first }
    var unreadable = try Self.reasons(failures)
    return CloudLookup(
      records: Self.whole(records, &unreadable).sorted { $0.name < $1.name },
      unreadable: unreadable
    )
  }

  /// The complete records; the others with their reasons.
  private static func whole(
    _ records: [CKRecord],
    _ unreadable: inout [String: String]
  ) -> [CloudRecord] {
    var whole: [CloudRecord] = []
    for record in records where unreadable[record.recordID.recordName] == nil {
      do {
        whole.append(try self.record(record))
      } catch {
        unreadable[record.recordID.recordName] = MirrorErrorText.text(error)
      }
    }
    return whole
  }

  /// The reasons why records are incomplete.
  ///
  /// A file that the service truncates or lacks does not affect the other records, even if
  /// requested repeatedly. An error that would apply to all of them is thrown, because all are then
  /// requested again.
  private static func reasons(_ failures: [CKRecord.ID: CKError]) throws -> [String: String] {
    var reasons: [String: String] = [:]
    let ordered = failures.sorted { $0.key.recordName < $1.key.recordName }
    for (recordID, error) in ordered {
      switch error.code {
      case .networkUnavailable, .notAuthenticated, .accountTemporarilyUnavailable,
        .requestRateLimited, .operationCancelled:
        throw failure(error)
      default: reasons[recordID.recordName] = error.localizedDescription
      }
    }
    return reasons
  }

  private static func changeToken(_ data: Data) -> CKServerChangeToken {
    CKServerChangeToken(syncToken: String(decoding: data, as: UTF8.self))
  }

  // MARK: Saving

  package func modify(_ zone: String, _ batch: CloudBatch) async throws -> [CloudOutcome] {
    let zoneID = zoneID(zone)
    var modification = RecordModification(
      zoneID: zoneID,
      atomic: true,
      sequence: ClientSequence(
        device: batch.device,
        sequence: batch.sequence,
        // One batch is open at a time: this batch's number acknowledges all before it.
        acknowledged: batch.sequence - 1,
        // Each opening of a store is a device: without this, the launches of one machine would
        // displace the replies of the others.
        finishedDevice: batch.finishedDevice
      )
    )
    for operation in batch.operations {
      let recordID = CKRecord.ID(recordName: operation.name, zoneID: zoneID)
      switch operation.kind {
      case .create, .update:
        modification.saves.append(save(operation, recordID))
      case .delete:
        modification.deletes.append(.init(recordID: recordID, changeTag: operation.tag))
      }
    }
    let result: RecordModificationResult
    do throws(CKError) {
      result = try await database.modify(modification)
    } catch {
      let failure = Self.failure(error)
      guard error.isOfRepeatedRequest, let failure = failure as? CloudFailure else { throw failure }
      throw RepeatedRequestFailure(failure)
    }
    // A missing zone, and a full database that takes no file, are no errors of single records.
    let errors = result.saves.map(Self.error) + result.deletes.map(Self.error)
    for error in errors.compactMap(\.self) {
      let failure = Self.failure(error)
      switch failure as? CloudFailure {
      case .zoneMissing?, .overQuota?: throw failure
      default: break
      }
    }
    var saves = result.saves.makeIterator()
    var deletes = result.deletes.makeIterator()
    return batch.operations.map { operation in
      switch operation.kind {
      case .create, .update:
        switch saves.next() {
        case .success(let system)?:
          .saved(tag: system.recordChangeTag ?? "", stamps: Self.stamps(system))
        case .failure(let error)?: Self.outcome(error, operation)
        case nil: .batchFailed
        }
      case .delete:
        switch deletes.next() {
        case .success?: .deleted
        case .failure(let error)?: Self.outcome(error, operation)
        case nil: .batchFailed
        }
      }
    }
  }

  private static func error<Success>(_ result: Result<Success, CKError>) -> CKError? {
    if case .failure(let error) = result { error } else { nil }
  }

  private func save(
    _ operation: CloudOperation,
    _ recordID: CKRecord.ID
  ) -> RecordModification.Save {
    var fields: [String: CKRecord.Field?] = [:]
    for (key, value) in operation.set.values {
      fields[key] = CKRecord.Field(
        Self.recordValue(value, effects: container.effects),
        isEncrypted: operation.encryptedKeys.contains(key)
      )
    }
    for key in operation.removed { fields[key] = .some(nil) }
    return RecordModification.Save(
      recordType: operation.recordType,
      recordID: recordID,
      condition: operation.tag.map { .hasTag($0) } ?? .isNew,
      fields: fields
    )
  }

  // MARK: Notifications

  package func notifications() -> AsyncThrowingStream<Void, any Error> {
    AsyncThrowingStream { [container] continuation in
      let task = container.effects.tasks.spawn {
        do {
          let channel = try container.pushChannel()
          while true {
            _ = try await channel.next()
            continuation.yield()
          }
        } catch {
          continuation.finish(throwing: error)
        }
      }
      continuation.onTermination = { _ in task.cancel() }
    }
  }
}
