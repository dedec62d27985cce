import Foundation
import OpenCoreData

/// An incremental store over dictionaries in memory, as in Apple's guide.
final class DictionaryIncrementalStore: NSIncrementalStore, @unchecked Sendable {
  static let storeType = "DictionaryIncrementalStore"

  /// One stored object: its values, identifiers for relationships, and a version.
  struct Record {
    var entity: String
    var values: [String: Any]
    var toOnes: [String: String]
    var version: UInt64
  }

  enum Failure: Error {
    case offline
    case unknownRequest
  }

  var records: [String: Record] = [:]
  var calls: [String] = []
  var requests: [NSPersistentStoreRequest] = []
  var fails = false
  private var lastNumber = 0

  override func loadMetadata() throws {
    metadata = [NSStoreUUIDKey: "dictionary-store", NSStoreTypeKey: Self.storeType]
    calls.append("loadMetadata")
  }

  override func execute(
    _ request: NSPersistentStoreRequest,
    with context: NSManagedObjectContext?
  ) throws -> Any {
    requests.append(request)
    if fails { throw Failure.offline }
    switch request.requestType {
    case .fetchRequestType:
      calls.append("fetch")
      guard let fetch = request as? NSFetchRequest<any NSFetchRequestResult> else {
        throw Failure.unknownRequest
      }
      return try results(of: fetch, context)
    case .saveRequestType:
      calls.append("save")
      guard let save = request as? NSSaveChangesRequest else { throw Failure.unknownRequest }
      return try saved(save)
    default:
      throw Failure.unknownRequest
    }
  }

  private func results(
    of fetch: NSFetchRequest<any NSFetchRequestResult>,
    _ context: NSManagedObjectContext?
  ) throws -> Any {
    guard let entity = fetch.entity, let context else { return [Any]() }
    var found = records.filter { $0.value.entity == entity.name }
      .map { reference, record -> NSDictionary in
        let row = NSMutableDictionary(dictionary: record.values)
        row["reference"] = reference
        return row
      }
    if let predicate = fetch.predicate { found = found.filter { predicate.evaluate(with: $0) } }
    for sort in (fetch.sortDescriptors ?? []).reversed() {
      found.sort { sort.compare($0, to: $1) == .orderedAscending }
    }
    found = Array(found.dropFirst(fetch.fetchOffset))
    if fetch.fetchLimit > 0 { found = Array(found.prefix(fetch.fetchLimit)) }
    let identifiers = found.map { row in
      newObjectID(for: entity, referenceObject: row["reference"] ?? "")
    }
    switch fetch.resultType {
    case .managedObjectResultType: return identifiers.map { context.object(with: $0) }
    case .managedObjectIDResultType: return identifiers
    case .countResultType: return [NSNumber(value: found.count)]
    default: return found
    }
  }

  private func saved(_ save: NSSaveChangesRequest) throws -> Any {
    for object in save.insertedObjects ?? [] { write(object, version: 1) }
    var conflicts: [NSMergeConflict] = []
    for object in save.updatedObjects ?? [] {
      let version = records[reference(of: object)]?.version ?? 0
      let known = knownVersions[reference(of: object)] ?? version
      if known != version {
        conflicts.append(
          NSMergeConflict(
            source: object,
            newVersion: Int(version),
            oldVersion: Int(known),
            cachedSnapshot: nil,
            persistedSnapshot: nil
          )
        )
      }
    }
    if !conflicts.isEmpty {
      throw NSError(
        domain: NSCocoaErrorDomain,
        code: NSManagedObjectMergeError,
        userInfo: [NSPersistentStoreSaveConflictsErrorKey: conflicts]
      )
    }
    for object in save.updatedObjects ?? [] {
      write(object, version: (records[reference(of: object)]?.version ?? 0) + 1)
    }
    for object in save.deletedObjects ?? [] { records[reference(of: object)] = nil }
    return [Any]()
  }

  /// The versions that this store has returned.
  private var knownVersions: [String: UInt64] = [:]

  private func write(_ object: NSManagedObject, version: UInt64) {
    var record = Record(
      entity: object.entity.name ?? "",
      values: [:],
      toOnes: [:],
      version: version
    )
    for (name, _) in object.entity.attributesByName {
      record.values[name] = object.value(forKey: name)
    }
    for (name, relationship) in object.entity.relationshipsByName where !relationship.isToMany {
      if let other = object.value(forKey: name) as? NSManagedObject {
        record.toOnes[name] = reference(of: other)
      }
    }
    records[reference(of: object)] = record
    knownVersions[reference(of: object)] = version
  }

  private func reference(of object: NSManagedObject) -> String {
    referenceObject(for: object.objectID) as? String ?? ""
  }

  override func obtainPermanentIDs(for array: [NSManagedObject]) throws -> [NSManagedObjectID] {
    calls.append("obtainPermanentIDs")
    return array.map { object in
      lastNumber += 1
      return newObjectID(for: object.entity, referenceObject: "r\(lastNumber)")
    }
  }

  override func newValuesForObject(
    with objectID: NSManagedObjectID,
    with context: NSManagedObjectContext
  ) throws -> NSIncrementalStoreNode {
    if fails { throw Failure.offline }
    let reference = referenceObject(for: objectID) as? String ?? ""
    calls.append("newValues \(reference)")
    guard let record = records[reference] else {
      throw NSError(domain: NSCocoaErrorDomain, code: NSManagedObjectReferentialIntegrityError)
    }
    knownVersions[reference] = record.version
    return NSIncrementalStoreNode(
      objectID: objectID,
      withValues: record.values,
      version: record.version
    )
  }

  override func newValue(
    forRelationship relationship: NSRelationshipDescription,
    forObjectWith objectID: NSManagedObjectID,
    with context: NSManagedObjectContext?
  ) throws -> Any {
    let reference = referenceObject(for: objectID) as? String ?? ""
    calls.append("newValue \(relationship.name) \(reference)")
    guard let destination = relationship.destinationEntity else { return NSNull() }
    if relationship.isToMany {
      let inverse = relationship.inverseRelationship?.name ?? ""
      return records.filter { $0.value.toOnes[inverse] == reference }.keys.sorted()
        .map { newObjectID(for: destination, referenceObject: $0) }
    }
    guard let other = records[reference]?.toOnes[relationship.name] else { return NSNull() }
    return newObjectID(for: destination, referenceObject: other)
  }

  override func managedObjectContextDidRegisterObjects(with objectIDs: [NSManagedObjectID]) {
    for objectID in objectIDs { calls.append("register \(referenceObject(for: objectID))") }
  }

  override func managedObjectContextDidUnregisterObjects(with objectIDs: [NSManagedObjectID]) {
    for objectID in objectIDs { calls.append("unregister \(referenceObject(for: objectID))") }
  }
}
