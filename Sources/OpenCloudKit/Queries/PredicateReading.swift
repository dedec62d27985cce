import CloudKitWebServices
import Foundation
import Synchronization

/// Translates predicates and sort descriptors into the wire's filters and sort keys.
///
/// Foundation's predicates can't be inspected outside Apple's platforms. A module whose predicates
/// can be inspected registers a writer.
package protocol CKPredicateFilterWriter: Sendable {
  /// Creates a writer.
  init()
  /// The filters that are equivalent to the predicate, combined with AND; nil if this writer does
  /// not support the predicate's class. Throws if it does, but no query can express the predicate.
  func filters(for predicate: NSPredicate) throws(CKError) -> [QueryFilter]?
  /// The sort key that is equivalent to the descriptor.
  func sort(for descriptor: NSSortDescriptor) throws(CKError) -> QuerySort?
}

/// The registered writers of this process, and the translations that need none.
package enum PredicateReading {
  private static let writers = Mutex<[any CKPredicateFilterWriter]>(
    [linkedWriter].compactMap { $0 }
  )

  /// The writer for `NSPredicate(format:)`, if the process links its module.
  ///
  /// It is looked up by its class name: an app that uses this module and Core Data's predicates
  /// directly calls nothing that could register the writer.
  private static var linkedWriter: (any CKPredicateFilterWriter)? {
    let type: AnyClass? = NSClassFromString("CloudKitMirroring.PredicateFilterWriter")
    return (type as? any CKPredicateFilterWriter.Type)?.init()
  }

  /// Registers a writer; the last registered one is tried first.
  package static func register(_ writer: any CKPredicateFilterWriter) {
    writers.withLock { $0.insert(writer, at: 0) }
  }

  static func filters(for predicate: NSPredicate) throws(CKError) -> [QueryFilter] {
    for writer in writers.withLock({ $0 }) {
      if let filters = try writer.filters(for: predicate) { return filters }
    }
    guard type(of: predicate) == NSPredicate.self, predicate == NSPredicate(value: true) else {
      throw CKError(
        .invalidArguments,
        "The predicate \(predicate) can't be read.",
        remedy: "Make it with NSPredicate(format:), or use NSPredicate(value: true)."
      )
    }
    return []
  }

  static func sorts(for descriptors: [NSSortDescriptor]) throws(CKError) -> [QuerySort] {
    let writers = self.writers.withLock { $0 }
    var sorts: [QuerySort] = []
    next: for descriptor in descriptors {
      for writer in writers {
        if let sort = try writer.sort(for: descriptor) {
          sorts.append(sort)
          continue next
        }
      }
      guard let near = descriptor as? CKLocationSortDescriptor else {
        throw CKError(
          .invalidArguments,
          "A sort descriptor of the query names no field.",
          remedy: "Make it with NSSortDescriptor(key:ascending:)."
        )
      }
      let coordinate = near.relativeLocation.coordinate
      var sort = sort(key: near.fieldName, ascending: true)
      sort.relativeLocation = LocationValue(
        latitude: coordinate.latitude,
        longitude: coordinate.longitude
      )
      sorts.append(sort)
    }
    return sorts
  }

  /// The sort key of a field; the names of system fields are translated to the wire's.
  package static func sort(key: String, ascending: Bool) -> QuerySort {
    if let system = systemFieldName(key) {
      return QuerySort(systemFieldName: system, ascending: ascending)
    }
    return QuerySort(fieldName: key, ascending: ascending)
  }

  /// The wire's name of a system field.
  package static func systemFieldName(_ key: String) -> String? {
    switch key {
    case CKRecord.SystemFieldKey.recordID: "recordName"
    case CKRecord.SystemFieldKey.creationDate: "createdTimestamp"
    case CKRecord.SystemFieldKey.modificationDate: "modifiedTimestamp"
    case CKRecord.SystemFieldKey.creatorUserRecordID: "createdUserRecordName"
    case CKRecord.SystemFieldKey.lastModifiedUserRecordID: "modifiedUserRecordName"
    case CKRecord.SystemFieldKey.share: "share"
    case CKRecord.SystemFieldKey.parent: "parent"
    default: nil
    }
  }
}
