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

  /// Functions of Apple's Objective-C module, which Foundation brings there; `AppleShims` has them.
  static let shims: Set<String> = ["autoreleasepool"]

  /// Names of Core Foundation, which Foundation brings there.
  static let coreFoundationPrefixes = ["CFAbsoluteTime", "CFRunLoop"]
}
