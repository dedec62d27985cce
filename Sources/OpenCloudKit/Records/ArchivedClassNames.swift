import Foundation

#if os(Linux)
/// Names the classes whose archives of Apple's CloudKit can be read.
///
/// An archive names classes without a module, and Foundation on Linux looks such a name up among its
/// own classes only. An app may read an archive before it calls this module, so the names are set
/// when the program is loaded: the linker collects this function's address with those that run then.
@used @section(".init_array")
private let nameArchivedClasses: @convention(c) () -> Void = {
  NSKeyedUnarchiver.setClass(CKServerChangeToken.self, forClassName: "CKServerChangeToken")
  NSKeyedUnarchiver.setClass(CKRecordZoneID.self, forClassName: "CKRecordZoneID")
  NSKeyedUnarchiver.setClass(CKRecordID.self, forClassName: "CKRecordID")
  NSKeyedUnarchiver.setClass(CKRecord.self, forClassName: "CKRecord")
  NSKeyedUnarchiver.setClass(CKReference.self, forClassName: "CKReference")
  NSKeyedUnarchiver.setClass(ArchivedValueStore.self, forClassName: "CKRecordValueStore")
  NSKeyedUnarchiver.setClass(ArchivedValueStore.self, forClassName: "CKEncryptedRecordValueStore")
  NSKeyedUnarchiver.setClass(ArchivedAsset.self, forClassName: "CKAsset")
}
#endif
