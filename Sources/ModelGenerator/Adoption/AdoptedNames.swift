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
  static let shims: Set<String> =
    ([
      "NSEC_PER_MSEC", "NSEC_PER_SEC", "NSEC_PER_USEC", "NSMapTable", "USEC_PER_SEC",
      "autoreleasepool", "objc_sync_enter", "objc_sync_exit",
    ] as Set).union(combine)

  /// The names of Combine's among them, which OpenCombine has too.
  static let combine: Set<String> = ["ObservableObject", "Published"]

  /// Names that Foundation has in a module of its own on Linux.
  static let foundationXML: Set<String> = [
    "XMLDTD", "XMLDocument", "XMLElement", "XMLNode", "XMLParser", "XMLParserDelegate",
  ]

  /// Names that Foundation has in a module of its own on Linux.
  static let foundationNetworking: Set<String> = [
    "CachedURLResponse", "HTTPCookie", "HTTPCookieStorage", "HTTPURLResponse",
    "NSMutableURLRequest", "NSURLRequest", "URLAuthenticationChallenge", "URLCache",
    "URLCredential", "URLProtectionSpace", "URLProtocol", "URLRequest", "URLResponse",
    "URLSession", "URLSessionConfiguration", "URLSessionDataDelegate", "URLSessionDataTask",
    "URLSessionDelegate", "URLSessionDownloadDelegate", "URLSessionDownloadTask",
    "URLSessionTask", "URLSessionTaskDelegate", "URLSessionUploadTask",
    "URLSessionWebSocketTask",
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
