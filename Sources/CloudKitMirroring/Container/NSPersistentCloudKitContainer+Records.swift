import Foundation
import OpenCloudKit
import OpenCoreData

extension NSPersistentCloudKitContainer {
  // MARK: Records of objects

  /// The last known server record of an object; nil before its first export.
  public func record(for managedObjectID: NSManagedObjectID) -> CKRecord? {
    Self.record(for: managedObjectID)
  }

  /// The records of objects; objects without one are left out.
  public func records(
    for managedObjectIDs: [NSManagedObjectID]
  ) -> [NSManagedObjectID: CKRecord] {
    Self.records(for: managedObjectIDs)
  }

  /// The record identifier of an object; nil before the mirroring has assigned it.
  public func recordID(for managedObjectID: NSManagedObjectID) -> CKRecord.ID? {
    Self.recordID(for: managedObjectID)
  }

  /// The record identifiers of objects; objects without one are left out.
  public func recordIDs(
    for managedObjectIDs: [NSManagedObjectID]
  ) -> [NSManagedObjectID: CKRecord.ID] {
    Self.recordIDs(for: managedObjectIDs)
  }

  /// The record of an object of any mirrored store.
  public class func record(for managedObjectID: NSManagedObjectID) -> CKRecord? {
    records(for: [managedObjectID])[managedObjectID]
  }

  /// The records of objects of any mirrored stores.
  public class func records(
    for managedObjectIDs: [NSManagedObjectID]
  ) -> [NSManagedObjectID: CKRecord] {
    var result: [NSManagedObjectID: CKRecord] = [:]
    for objectID in managedObjectIDs {
      guard let reference = objectID.reference,
        let mirror = MirroredStores.shared.mirror(of: objectID.persistentStore)
      else { continue }
      result[objectID] = mirror.knownRecord(of: reference)
    }
    return result
  }

  /// The record identifier of an object of any mirrored store.
  public class func recordID(for managedObjectID: NSManagedObjectID) -> CKRecord.ID? {
    recordIDs(for: [managedObjectID])[managedObjectID]
  }

  /// The record identifiers of objects of any mirrored stores.
  public class func recordIDs(
    for managedObjectIDs: [NSManagedObjectID]
  ) -> [NSManagedObjectID: CKRecord.ID] {
    var result: [NSManagedObjectID: CKRecord.ID] = [:]
    for objectID in managedObjectIDs {
      guard let reference = objectID.reference,
        let mirror = MirroredStores.shared.mirror(of: objectID.persistentStore)
      else { continue }
      result[objectID] = mirror.knownRecordID(of: reference)
    }
    return result
  }

  // MARK: Rights

  /// Whether the server would accept a change of the object.
  public func canUpdateRecord(forManagedObjectWith objectID: NSManagedObjectID) -> Bool {
    // The owner of a private database may change everything; other stores have no server.
    true
  }

  /// Whether the server would accept a deletion of the object.
  public func canDeleteRecord(forManagedObjectWith objectID: NSManagedObjectID) -> Bool { true }

  /// Whether objects of a store can be changed.
  public func canModifyManagedObjects(in store: NSPersistentStore) -> Bool { !store.isReadOnly }
}

extension NSManagedObjectContext {
  /// The last known server record of an object; nil before its first export.
  public func record(for managedObjectID: NSManagedObjectID) -> CKRecord? {
    NSPersistentCloudKitContainer.record(for: managedObjectID)
  }

  /// The records of objects; objects without one are left out.
  public func records(
    for managedObjectIDs: [NSManagedObjectID]
  ) -> [NSManagedObjectID: CKRecord] {
    NSPersistentCloudKitContainer.records(for: managedObjectIDs)
  }

  /// The record identifier of an object; nil before the mirroring has assigned it.
  public func recordID(for managedObjectID: NSManagedObjectID) -> CKRecord.ID? {
    NSPersistentCloudKitContainer.recordID(for: managedObjectID)
  }

  /// The record identifiers of objects; objects without one are left out.
  public func recordIDs(
    for managedObjectIDs: [NSManagedObjectID]
  ) -> [NSManagedObjectID: CKRecord.ID] {
    NSPersistentCloudKitContainer.recordIDs(for: managedObjectIDs)
  }
}
