import CloudKitWebServices
import Foundation
import Synchronization

/// A query: a record type, a predicate and sort descriptors.
///
/// ```swift
/// let query = CKQuery(
///   recordType: "Note",
///   predicate: NSPredicate(format: "text BEGINSWITH %@", "Buy")
/// )
/// query.sortDescriptors = [NSSortDescriptor(key: "text", ascending: true)]
/// var (page, cursor) = try await database.records(matching: query, inZoneWith: zoneID)
/// var found = try page.map { try $0.1.get() }
/// while let next = cursor {
///   (page, cursor) = try await database.records(continuingMatchFrom: next)
///   found += try page.map { try $0.1.get() }
/// }
/// ```
public final class CKQuery: NSObject, NSSecureCoding, NSCopying, @unchecked Sendable {
  // Unchecked: the sort descriptors are inside `order`; predicates and sort descriptors are
  // immutable, and so is the rest.

  /// The type of the records.
  public let recordType: CKRecord.RecordType
  /// The condition that the records satisfy.
  public let predicate: NSPredicate
  private let order: Mutex<Order>
  /// The filters of a query that was created from the wire's own terms.
  private let ownFilters: [QueryFilter]?

  private struct Order: @unchecked Sendable {
    // Unchecked: sort descriptors are immutable.
    var descriptors: [NSSortDescriptor]?
    var sorts: [QuerySort]?
  }

  /// The order of the results.
  public var sortDescriptors: [NSSortDescriptor]? {
    get { order.withLock { $0 }.descriptors }
    set {
      let order = Order(descriptors: newValue, sorts: nil)
      self.order.withLock { $0 = order }
    }
  }

  /// Creates a query.
  ///
  /// Differs from CloudKit: the predicate is translated when the query runs; a predicate that
  /// CloudKit can't run fails with `invalidArguments` then, where Apple's initializer raises an
  /// exception.
  ///
  /// Stops the process if the record type is empty.
  public init(recordType: CKRecord.RecordType, predicate: NSPredicate) {
    precondition(!recordType.isEmpty, "recordType may not be empty")
    self.recordType = recordType
    self.predicate = predicate
    ownFilters = nil
    order = Mutex(Order(descriptors: nil, sorts: nil))
    super.init()
  }

  /// Creates a query from the wire's filters and sort keys.
  package init(recordType: CKRecord.RecordType, filters: [QueryFilter], sorts: [QuerySort] = []) {
    self.recordType = recordType
    predicate = NSPredicate(value: true)
    ownFilters = filters
    order = Mutex(Order(descriptors: nil, sorts: sorts))
    super.init()
  }

  private init(
    recordType: CKRecord.RecordType,
    predicate: NSPredicate,
    filters: [QueryFilter]?,
    descriptors: [NSSortDescriptor]?,
    sorts: [QuerySort]?
  ) {
    self.recordType = recordType
    self.predicate = predicate
    ownFilters = filters
    order = Mutex(Order(descriptors: descriptors, sorts: sorts))
    super.init()
  }

  /// The query in the wire's terms.
  package func wire() throws(CKError) -> RecordQuery {
    guard recordType != CKRecord.SystemType.userRecord else {
      throw CKError(
        .invalidArguments,
        "CloudKit can't query user records.",
        remedy: "Fetch them by their identifiers."
      )
    }
    let filters: [QueryFilter]
    if let ownFilters {
      filters = ownFilters
    } else {
      filters = try PredicateReading.filters(for: predicate)
    }
    let order = self.order.withLock { $0 }
    var sorts = order.sorts ?? []
    if order.sorts == nil { sorts = try PredicateReading.sorts(for: order.descriptors ?? []) }
    return RecordQuery(
      recordType: recordType,
      filterBy: filters.isEmpty ? nil : filters,
      sortBy: sorts.isEmpty ? nil : sorts
    )
  }

  /// Whether archives of this class are read securely.
  public static var supportsSecureCoding: Bool { true }

  /// Reads a query from an archive, in the wire's terms.
  public convenience init(coder: NSCoder) {
    let data = coder.decodeIfPresent(of: NSData.self, forKey: "Query")
    let wire = data.flatMap {
      try? WireCoding.decode(RecordQuery.self, from: Data(referencing: $0))
    }
    self.init(
      recordType: wire?.recordType ?? "",
      filters: wire?.filterBy ?? [],
      sorts: wire?.sortBy ?? []
    )
  }

  /// Writes the query to an archive, in the wire's terms.
  public func encode(with coder: NSCoder) {
    do {
      coder.encode(try WireCoding.encode(wire()) as NSData, forKey: "Query")
    } catch {
      preconditionFailure("The query \(self) can't be archived: \(error)")
    }
  }

  /// A copy of the query.
  public func copy(with zone: NSZone? = nil) -> Any {
    let order = self.order.withLock { $0 }
    return CKQuery(
      recordType: recordType,
      predicate: predicate,
      filters: ownFilters,
      descriptors: order.descriptors,
      sorts: order.sorts
    )
  }

  /// The form CloudKit prints.
  public override var description: String {
    "<CKQuery: \(RecordFormatter.address(of: self)); recordType=\(recordType), "
      + "predicate=\(predicate)>"
  }
}
