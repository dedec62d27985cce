import CloudKitWebServices
import Foundation
import Synchronization

/// Turns predicates and sort descriptors into filters and sort keys of the wire.
///
/// Foundation can't look inside its predicates outside Apple's platforms. The module whose
/// predicates can be looked into has a writer.
package protocol CKPredicateFilterWriter: Sendable {
  /// Creates a writer.
  init()
  /// The filters that mean the same as the predicate, all of them to hold; nothing where the
  /// predicate is not of a kind that this writer knows. Throws where it is, but no query can be
  /// made of it.
  func filters(for predicate: NSPredicate) throws(CKError) -> [QueryFilter]?
  /// The sort key that means the same as the descriptor.
  func sort(for descriptor: NSSortDescriptor) throws(CKError) -> QuerySort?
}

/// The writers of this process, and what works without one.
package enum PredicateReading {
  private static let writers = Mutex<[any CKPredicateFilterWriter]>(
    [linkedWriter].compactMap { $0 }
  )

  /// The writer for `NSPredicate(format:)`, where the process has the module with it.
  ///
  /// It is found by name: an app that syncs by hand makes predicates with Core Data's module and
  /// queries with CloudKit's, and calls nothing that could introduce the two to each other.
  private static var linkedWriter: (any CKPredicateFilterWriter)? {
    let type: AnyClass? = NSClassFromString("CloudKitMirroring.PredicateFilterWriter")
    return (type as? any CKPredicateFilterWriter.Type)?.init()
  }

  /// Adds a writer; the newest is asked first.
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

  /// The sort key of a field; the names that records use for system fields become the wire's.
  package static func sort(key: String, ascending: Bool) -> QuerySort {
    if let system = systemFieldName(key) {
      return QuerySort(systemFieldName: system, ascending: ascending)
    }
    return QuerySort(fieldName: key, ascending: ascending)
  }

  /// What the wire calls a system field of a record.
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
