import CloudKit
import CoreData

/// The sync code of such an app: it stores system fields, pushes its objects and pulls remote ones.
final class HandSync {
  let database: CKDatabase
  let zone = CKRecordZone.ID(zoneName: "moviesZone", ownerName: CKCurrentUserDefaultName)
  private var token: CKServerChangeToken?

  init(database: CKDatabase) {
    self.database = database
  }

  func prepare() async throws {
    _ = try await database.modifyRecordZones(saving: [CKRecordZone(zoneID: zone)], deleting: [])
  }

  /// Sends all objects, and stores the system fields of the saved records.
  func push(_ context: NSManagedObjectContext) async throws {
    let zone = zone
    let records = try await context.perform {
      let movies: [Movie] = try context.fetch(Movie.fetchRequest())
      let members: [FamilyMember] = try context.fetch(FamilyMember.fetchRequest())
      return movies.map { $0.recordForZone(zone) } + members.map { $0.recordForZone(zone) }
    }
    let result = try await database.modifyRecords(
      saving: records,
      deleting: [],
      savePolicy: .ifServerRecordUnchanged,
      atomically: true
    )
    let saved = try result.saveResults.values.map { try $0.get() }
    try await context.perform {
      for record in saved { Self.keepSystemFields(of: record, in: context) }
      try context.save()
    }
  }

  /// Applies the remote changes since the last pull.
  func pull(_ context: NSManagedObjectContext) async throws {
    let changes = try await database.recordZoneChanges(inZoneWith: zone, since: token)
    token = changes.changeToken
    let records = try changes.modificationResultsByID.values.map { try $0.get().record }
    let deletions = changes.deletions.map(\.recordID.recordName)
    try await context.perform {
      // Movies first, since family members refer to them.
      for record in records where record.recordType == "Movie" {
        Self.importMovie(record, into: context)
      }
      for record in records where record.recordType == "FamilyMember" {
        Self.importMember(record, into: context)
      }
      for name in deletions {
        if let movie = Movie.find(byIdentifier: name, in: context) { context.delete(movie) }
        if let member = FamilyMember.find(byIdentifier: name, in: context) {
          context.delete(member)
        }
      }
      try context.save()
    }
  }

  private static func importMovie(_ record: CKRecord, into context: NSManagedObjectContext) {
    let name = record.recordID.recordName
    let movie = Movie.find(byIdentifier: name, in: context) ?? Movie(context: context)
    movie.recordName = name
    movie.title = record["title"] as? String
    movie.popularity = record["rating"] as? Double ?? 0
    movie.remoteId = record["remoteId"] as? Int64 ?? 0
    movie.cloudKitData = encodedSystemFields(of: record)
  }

  private static func importMember(_ record: CKRecord, into context: NSManagedObjectContext) {
    let name = record.recordID.recordName
    let member =
      FamilyMember.find(byIdentifier: name, in: context) ?? FamilyMember(context: context)
    member.recordName = name
    member.name = record["name"] as? String
    let references = record["movies"] as? [CKRecord.Reference] ?? []
    let movies = Movie.find(
      byIdentifiers: references.map(\.recordID.recordName),
      in: context
    )
    member.movies = NSSet(array: movies)
    member.cloudKitData = encodedSystemFields(of: record)
  }

  private static func keepSystemFields(
    of record: CKRecord,
    in context: NSManagedObjectContext
  ) {
    let name = record.recordID.recordName
    let data = encodedSystemFields(of: record)
    Movie.find(byIdentifier: name, in: context)?.cloudKitData = data
    FamilyMember.find(byIdentifier: name, in: context)?.cloudKitData = data
  }

  private static func encodedSystemFields(of record: CKRecord) -> Data {
    let coder = NSKeyedArchiver(requiringSecureCoding: true)
    record.encodeSystemFields(with: coder)
    coder.finishEncoding()
    return coder.encodedData
  }
}
