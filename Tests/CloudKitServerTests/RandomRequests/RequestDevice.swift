import CloudKitWebServices
import Foundation
import Testing

/// A device that follows a database's feeds and keeps a replica of the records.
struct RequestDevice {
  /// A device's replica of a zone.
  struct Replica: Hashable {
    var token: String?
    var records: [String: ModelRecord] = [:]
    var shares: Set<String> = []
  }

  var person: Person
  let scope: DatabaseScope
  var listener: Listener
  /// The number of the device's last batch.
  var sequence: Int64 = 0
  private(set) var replicas: [String: Replica] = [:]
  private var databaseToken: String?
  /// Zones whose changes have not been read completely.
  private var changed: Set<String> = []
  /// The owner's name of shared zones, for a participant.
  private let ownerRecordName: String?

  init(_ person: Person, in scope: DatabaseScope, owner: String?) async throws {
    self.person = person
    self.scope = scope
    ownerRecordName = owner
    let _: SubscriptionsResponse = try await person.call(
      .modifySubscriptions,
      ModifySubscriptionsRequest(operations: [
        SubscriptionOperation(
          operationType: .create,
          subscription: Subscription(subscriptionID: "all", subscriptionType: .database)
        )
      ]),
      in: scope
    )
    listener = try await Listener(person)
  }

  func zoneID(_ name: String) -> ZoneID {
    ZoneID(zoneName: name, ownerRecordName: scope == .shared ? ownerRecordName : nil)
  }

  /// Sends the device's further requests to a server.
  mutating func use(_ server: TestServer) { person.server = server }

  /// Reads at most `pages` pages of feeds; returns whether nothing is left to read.
  mutating func catchUp(pages: Int, limit: Int) async throws -> Bool {
    var left = pages
    while left > 0 {
      left -= 1
      if try await !readDatabase(limit: limit) { break }
      if left == 0 { return false }
    }
    while let zone = changed.sorted().first {
      guard left > 0 else { return false }
      left -= 1
      if try await !readZone(zone, limit: limit) { changed.remove(zone) }
    }
    return true
  }

  /// Reads a page; returns whether there are more.
  private mutating func readDatabase(limit: Int) async throws -> Bool {
    let isFirst = databaseToken == nil
    let page: DatabaseChangesResponse
    do {
      page = try await person.call(
        .databaseChanges,
        DatabaseChangesRequest(syncToken: databaseToken, resultsLimit: limit),
        in: scope
      )
    } catch let error as ErrorDictionary where error.extension?.code == .changeTokenExpired {
      databaseToken = nil
      // Zones that the listing from the start lacks are found to be deleted when they are read.
      changed.formUnion(replicas.keys)
      return true
    }
    for item in page.zones {
      let zone = try item.get()
      if zone.deleted == true {
        replicas[zone.zoneID.zoneName] = nil
        changed.remove(zone.zoneID.zoneName)
      } else {
        changed.insert(zone.zoneID.zoneName)
      }
    }
    databaseToken = page.syncToken
    return page.moreComing == true || (isFirst && page.syncToken == nil)
  }

  /// Reads a page; returns whether there are more.
  private mutating func readZone(_ name: String, limit: Int) async throws -> Bool {
    var replica = replicas[name] ?? Replica()
    let page: ZoneChanges
    do {
      let reply: ZoneChangesResponse = try await person.call(
        .zoneChanges,
        ZoneChangesRequest(zones: [
          ZoneChangesOptions(
            zoneID: zoneID(name),
            syncToken: replica.token,
            feed: FeedOptions(resultsLimit: limit)
          )
        ]),
        in: scope
      )
      page = try reply.zones[0].get()
    } catch let error as ErrorDictionary {
      if error.serverErrorCode == .zoneNotFound {
        replicas[name] = nil
        return false
      }
      guard error.extension?.code == .changeTokenExpired, replica.token != nil else { throw error }
      replicas[name] = Replica()
      return true
    }
    for item in page.records {
      let record = try item.get()
      let recordName = record.recordName ?? ""
      if record.deleted == true {
        replica.records[recordName] = nil
        replica.shares.remove(recordName)
      } else if record.recordType == ShareDictionary.recordType {
        replica.shares.insert(recordName)
      } else {
        replica.records[recordName] = ModelRecord(record)
      }
    }
    replica.token = page.syncToken
    replicas[name] = replica
    return page.moreComing == true
  }
}
