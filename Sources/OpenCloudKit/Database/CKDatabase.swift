import Effects
import Foundation

/// A database of records: public, private, or shared with the user.
///
/// ```swift
/// let database = container.privateCloudDatabase
/// let zone = try await database.save(CKRecordZone(zoneName: "Notes"))
///
/// let noteID = CKRecord.ID(recordName: "note-1", zoneID: zone.zoneID)
/// let note = CKRecord(recordType: "Note", recordID: noteID)
/// note["text"] = "Buy milk"
/// try await database.save(note)
///
/// let fetched = try await database.record(for: noteID)
/// fetched["text"] = "Buy oat milk"
/// try await database.save(fetched)
/// try await database.deleteRecord(withID: noteID)
/// ```
public final class CKDatabase: NSObject, @unchecked Sendable {
  // Unchecked: immutable after the initializer.

  /// Which users can read a database.
  public enum Scope: Int, Sendable {
    /// All users.
    case `public` = 1
    /// The user.
    case `private` = 2
    /// The user and the users who share with them.
    case shared = 3
  }

  /// Which users can read the database.
  public let databaseScope: CKDatabase.Scope
  /// The container that the database is of.
  package let container: CKContainer

  init(container: CKContainer, scope: Scope) {
    self.container = container
    databaseScope = scope
    super.init()
  }

  /// This database with all its calls for one account: they fail where another one is signed in.
  package func pinned(to pin: AccountPin) -> CKDatabase {
    CKDatabase(container: container.pinned(to: pin), scope: databaseScope)
  }

  /// This database with all its calls for the currently signed-in account, for an operation of
  /// several requests.
  package func pinnedToAccount() -> CKDatabase {
    CKDatabase(container: container.pinnedToAccount(), scope: databaseScope)
  }

  package var effects: Effects { container.effects }

  package var mapping: WireMapping {
    WireMapping(
      scope: databaseScope,
      effects: effects,
      shareOrigin: (try? container.client())?.configuration.shareOrigin
    )
  }

  func transfers() throws(CKError) -> AssetTransfers {
    AssetTransfers(client: try container.client(), scope: databaseScope)
  }

  /// Whether the other object is the same database of the same container.
  public override func isEqual(_ object: Any?) -> Bool {
    guard let other = object as? CKDatabase else { return false }
    return databaseScope == other.databaseScope
      && container.containerIdentifier == other.container.containerIdentifier
  }

  /// A hash of scope and container.
  public override var hash: Int {
    var hasher = Hasher()
    hasher.combine(databaseScope)
    hasher.combine(container.containerIdentifier)
    return hasher.finalize()
  }

  /// The form CloudKit prints.
  public override var description: String {
    "<CKDatabase: \(RecordFormatter.address(of: self)); databaseScope=\(databaseScope)>"
  }
}
