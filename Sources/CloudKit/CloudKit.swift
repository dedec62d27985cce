@_exported import OpenCloudKit

#if CloudKit
// Foundation on Linux has no `NSPredicate(format:)` and no `NSSortDescriptor(key:ascending:)`; the
// module with ours is linked and its members are visible, so that files which only `import
// CloudKit` make queries as with Apple. Without the trait that module is not linked.
import CloudKitMirroring
#endif
