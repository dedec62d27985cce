@_exported import OpenCloudKit

#if CloudKit
// Foundation on Linux has no `NSPredicate(format:)` and no `NSSortDescriptor(key:ascending:)`; the
// module with ours is linked and its members are seen, so that files which say no more than
// `import CloudKit` make queries as they do at Apple. Without the trait there is no such weight.
import CloudKitMirroring
#endif
