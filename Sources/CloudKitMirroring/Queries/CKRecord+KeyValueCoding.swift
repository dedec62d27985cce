import OpenCloudKit
import OpenCoreData

/// Predicates and sort descriptors read the fields and properties of records in memory.
extension CKRecord: KeyValueCoding {}
