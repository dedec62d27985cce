import SwiftSyntax

/// Names whose use needs an import on Linux.
enum AdoptedNames {
  /// Names that exist in Core Data only.
  static let coreData: Set<String> = [
    "NSAttributeDescription", "NSBatchDeleteRequest", "NSBatchInsertRequest",
    "NSBatchUpdateRequest",
    "NSEntityDescription", "NSFetchRequest", "NSFetchedResultsController", "NSManagedObject",
    "NSManagedObjectContext", "NSManagedObjectID", "NSManagedObjectModel", "NSMergePolicy",
    "NSPersistentCloudKitContainer", "NSPersistentContainer", "NSPersistentHistoryToken",
    "NSPersistentStore", "NSPersistentStoreCoordinator", "NSPersistentStoreDescription",
    "NSRelationshipDescription",
  ]
  /// Types that Foundation lacks on Linux, or declares as unavailable, and that CoreData declares.
  static let movedTypes: Set<String> = [
    "NSComparisonPredicate", "NSExpression",
    "NSSecureUnarchiveFromDataTransformer", "NSValueTransformerName", "ValueTransformer",
  ]

  /// Names that Foundation brings there from other modules; `AppleShims` has them.
  static let shims: Set<String> = [
    "NSEC_PER_MSEC", "NSEC_PER_SEC", "NSEC_PER_USEC", "USEC_PER_SEC", "autoreleasepool",
    "objc_sync_enter", "objc_sync_exit",
  ]

  /// Names of Core Foundation, which Foundation brings there.
  static let coreFoundationPrefixes = ["CFAbsoluteTime", "CFRunLoop"]

  /// The module to import on Linux in place of a part of one that is only on Apple's platforms, such as
  /// `CoreData.CoreDataErrors` or the class `Foundation.ValueTransformer`.
  static func wholeModule(of node: ImportDeclSyntax) -> String? {
    let path = node.path.map(\.name.text)
    guard path.count > 1 else { return nil }
    guard node.importKindSpecifier != nil else {
      return ["CloudKit", "CoreData", "Foundation"].contains(path[0]) ? path[0] : nil
    }
    return path[0] == "Foundation" && movedTypes.contains(path[1]) ? "CoreData" : nil
  }
}
