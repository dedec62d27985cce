import CloudKitWebServices
import Foundation
import Synchronization

@testable import CloudKitServer

/// What a storage's readers have read: work that a test counts.
final class ReadCount: Sendable {
  private struct Values {
    var (bytes, records, users, children, links) = (0, 0, 0, 0, 0)
    var (asked, devices, reads, shares) = (0, 0, 0, 0)
  }

  private let values = Mutex(Values())
  private let onRead: @Sendable () -> Void

  /// `onRead` is called at the begin of each transaction that reads.
  init(onRead: @escaping @Sendable () -> Void = {}) { self.onRead = onRead }

  /// Bytes of fields of whole records, pages of feeds and queries excepted.
  var fieldBytes: Int { values.withLock { $0.bytes } }
  var records: Int { values.withLock { $0.records } }
  /// Look-ups of users by their record names.
  var users: Int { values.withLock { $0.users } }

  /// Records that were found by their parents.
  var children: Int { values.withLock { $0.children } }
  /// A user's links to shares.
  var links: Int { values.withLock { $0.links } }

  /// Records that were asked for by their keys, existing or not.
  var asked: Int { values.withLock { $0.asked } }
  /// Devices that were looked up.
  var devices: Int { values.withLock { $0.devices } }
  /// Shares whose names were listed.
  var shares: Int { values.withLock { $0.shares } }
  /// Transactions that read.
  var reads: Int { values.withLock { $0.reads } }

  func addAsked(_ number: Int) { values.withLock { $0.asked += number } }

  func addDevice() { values.withLock { $0.devices += 1 } }

  func addShares(_ number: Int) { values.withLock { $0.shares += number } }

  func addRead() {
    values.withLock { $0.reads += 1 }
    onRead()
  }

  func reset() { values.withLock { $0 = Values() } }

  func addChildren(_ number: Int) { values.withLock { $0.children += number } }

  func addLinks(_ number: Int) { values.withLock { $0.links += number } }

  func add(_ records: some Collection<StoredRecord>) {
    values.withLock { values in
      values.records += records.count
      for record in records { values.bytes += record.fields.count }
    }
  }

  func addUser() { values.withLock { $0.users += 1 } }
}

extension TestServer {
  /// A server whose reads are counted.
  static func counting(
    limits: (inout ServiceLimits) -> Void = { _ in },
    discovery: DiscoveryPolicy = .everyone
  ) async throws -> (TestServer, ReadCount) {
    let count = ReadCount()
    let server = try await TestServer(
      limits: limits,
      discovery: discovery,
      storage: { FlakyStorage($0, counting: count) }
    )
    return (server, count)
  }
}

/// A snapshot that counts what is read through it.
struct CountingSnapshot: StorageSnapshot {
  let base: any StorageSnapshot
  let count: ReadCount

  func database(_ id: PartitionID) throws -> StoredDatabase {
    try base.database(id)
  }
  func zones(in id: PartitionID, named names: [String]) throws -> [StoredZone] {
    try base.zones(in: id, named: names)
  }
  func livingZones(in id: PartitionID) throws -> [StoredZone] {
    try base.livingZones(in: id)
  }
  func zones(
    in id: PartitionID,
    changedAfter position: ZoneListPosition,
    limit: Int
  ) throws -> [StoredZone] {
    try base.zones(in: id, changedAfter: position, limit: limit)
  }
  func records(in id: PartitionID, keys: [RecordKey]) throws -> [RecordKey: StoredRecord] {
    let found = try base.records(in: id, keys: keys)
    count.addAsked(keys.count)
    count.add(found.values)
    return found
  }
  func outlines(in id: PartitionID, keys: [RecordKey]) throws -> [RecordKey: StoredRecord] {
    try base.outlines(in: id, keys: keys)
  }
  func references(
    in id: PartitionID,
    to targets: [RecordKey],
    madeBy creator: String?,
    limit: Int
  ) throws -> [StoredReference] {
    try base.references(in: id, to: targets, madeBy: creator, limit: limit)
  }
  func referrerCounts(
    in id: PartitionID,
    to targets: [RecordKey],
    action: ReferenceAction,
    except sources: [RecordKey]
  ) throws -> [RecordKey: Int] {
    try base.referrerCounts(in: id, to: targets, action: action, except: sources)
  }
  func parents(in id: PartitionID, of keys: [RecordKey]) throws -> [RecordKey: String] {
    try base.parents(in: id, of: keys)
  }
  func changes(in id: PartitionID, _ range: ChangeRange) throws -> [RecordRow] {
    try base.changes(in: id, range)
  }
  func traceHorizon(in id: PartitionID, _ range: ChangeRange) throws -> ChangeNumber? {
    try base.traceHorizon(in: id, range)
  }

  func expiredTraces(in id: PartitionID, before time: Int64) throws -> [ZoneNumber: ChangeNumber] {
    try base.expiredTraces(in: id, before: time)
  }
  func partitions() throws -> [PartitionID] {
    try base.partitions()
  }
  func activeIndexes(in id: PartitionID, types: [String]) throws -> [String: Set<String>] {
    try base.activeIndexes(in: id, types: types)
  }
  func children(
    in id: PartitionID,
    of parents: [RecordKey],
    limit: Int
  ) throws -> [StoredChild] {
    let found = try base.children(in: id, of: parents, limit: limit)
    count.addChildren(found.count)
    return found
  }
  func shareNames(in id: PartitionID, zone: ZoneNumber, limit: Int) throws -> [String] {
    let found = try base.shareNames(in: id, zone: zone, limit: limit)
    count.addShares(found.count)
    return found
  }
  func shares<Part>(
    in id: PartitionID,
    zone: ZoneNumber,
    after name: String,
    limit: Int,
    _ read: (StoredShare) throws -> Part
  ) throws -> [Part] {
    try base.shares(in: id, zone: zone, after: name, limit: limit, read)
  }
  func shares<Part>(
    in id: PartitionID,
    keys: [RecordKey],
    _ read: (StoredShare) throws -> Part
  ) throws -> [Part] {
    try base.shares(in: id, keys: keys, read)
  }
  func members(in id: PartitionID, _ range: ShareRange) throws -> [RecordRow] {
    try base.members(in: id, range)
  }
  func departures(in id: PartitionID, _ range: ShareRange) throws -> [StoredDeparture] {
    try base.departures(in: id, range)
  }
  func present(
    in id: PartitionID,
    at moment: ChangeNumber,
    _ range: ShareRange
  ) throws -> [StoredDeparture] {
    try base.present(in: id, at: moment, range)
  }
  func isIndexReady(in id: PartitionID, type: String, field: String) throws -> Bool {
    try base.isIndexReady(in: id, type: type, field: field)
  }
  func entries(in id: PartitionID, _ walk: IndexWalk) throws -> [IndexPosition] {
    try base.entries(in: id, walk)
  }
  func reply(
    in id: PartitionID,
    user: String,
    device: String,
    from sequence: Int64
  ) throws -> StoredReply? {
    try base.reply(in: id, user: user, device: device, from: sequence)
  }
  func hasReplies(in id: PartitionID, before time: Int64) throws -> Bool {
    try base.hasReplies(in: id, before: time)
  }
  func subscriptions(in id: PartitionID, user: String) throws -> [StoredSubscription] {
    try base.subscriptions(in: id, user: user)
  }
  func subscriptions(
    in id: PartitionID,
    types: [String],
    users: [String]?
  ) throws -> [OwnedSubscription] {
    try base.subscriptions(in: id, types: types, users: users)
  }
  func subscriptionSizes(in id: PartitionID, types: [String]) throws -> [SubscriptionSize] {
    try base.subscriptionSizes(in: id, types: types)
  }
  func usedAssets(in id: PartitionID) throws -> Set<String> {
    try base.usedAssets(in: id)
  }
  func schema(container: String, environment: ContainerEnvironment) throws -> StoredSchema? {
    try base.schema(container: container, environment: environment)
  }
  func containers() throws -> [String] {
    try base.containers()
  }
  func partitions(
    container: String,
    environment: ContainerEnvironment
  ) throws -> [PartitionKey: PartitionID] {
    try base.partitions(container: container, environment: environment)
  }
  func account(id: String) throws -> StoredAccount? {
    try base.account(id: id)
  }
  func account(userName: String) throws -> StoredAccount? {
    try base.account(userName: userName)
  }
  func accounts(after userName: String?, limit: Int) throws -> [StoredAccount] {
    try base.accounts(after: userName, limit: limit)
  }
  func accountCount() throws -> Int {
    try base.accountCount()
  }
  func accounts(emailAddress: String) throws -> [StoredAccount] {
    try base.accounts(emailAddress: emailAddress)
  }
  func user(container: String, account: String) throws -> StoredUser? {
    try base.user(container: container, account: account)
  }
  func user(container: String, recordName: String) throws -> StoredUser? {
    count.addUser()
    return try base.user(container: container, recordName: recordName)
  }
  func shortGUID(_ guid: String) throws -> StoredShortGUID? {
    try base.shortGUID(guid)
  }
  func shareLinks(
    container: String,
    environment: ContainerEnvironment,
    user: String,
    owner: String?
  ) throws -> [StoredShareLink] {
    let found = try base.shareLinks(
      container: container,
      environment: environment,
      user: user,
      owner: owner
    )
    count.addLinks(found.count)
    return found
  }
  func hasShareLink(_ link: StoredShareLink) throws -> Bool { try base.hasShareLink(link) }
  func shareLinkCount(
    container: String,
    environment: ContainerEnvironment,
    user: String
  ) throws -> Int {
    try base.shareLinkCount(container: container, environment: environment, user: user)
  }
  func apiToken(digest: String) throws -> StoredAPIToken? {
    try base.apiToken(digest: digest)
  }
  func apiTokens() throws -> [StoredAPIToken] {
    try base.apiTokens()
  }
  func session(digest: String) throws -> StoredSession? {
    try base.session(digest: digest)
  }
  func device(token: String) throws -> StoredDevice? {
    count.addDevice()
    return try base.device(token: token)
  }
  func devices(
    container: String,
    environment: ContainerEnvironment,
    user: String
  ) throws -> [StoredDevice] {
    try base.devices(container: container, environment: environment, user: user)
  }
  func sessions(account: String) throws -> [StoredSession] {
    try base.sessions(account: account)
  }
  func users(account: String) throws -> [StoredUser] {
    try base.users(account: account)
  }
  func partitions(container: String, owner: String) throws -> [PartitionKey: PartitionID] {
    try base.partitions(container: container, owner: owner)
  }
  func recordBytes(in id: PartitionID) throws -> Int64 {
    try base.recordBytes(in: id)
  }
  func exceeds(
    _ step: RemovalStep,
    in id: PartitionID,
    _ thinning: WriteBatch.Thinning
  ) throws -> Bool {
    try base.exceeds(step, in: id, thinning)
  }
  func creators(in id: PartitionID, holding bytes: Int64) throws -> [String] {
    try base.creators(in: id, holding: bytes)
  }
  func users(container: String, limit: Int) throws -> [StoredUser] {
    try base.users(container: container, limit: limit)
  }
  func userCount(container: String) throws -> Int {
    try base.userCount(container: container)
  }
  func recordCount(in id: PartitionID, type: String?) throws -> Int64 {
    try base.recordCount(in: id, type: type)
  }
  func entry(_ key: DirectoryEntry.Key) throws -> DirectoryEntry? {
    try base.entry(key)
  }

  func entries(_ range: DirectoryRange) throws -> [DirectoryEntry] {
    try base.entries(range)
  }
}
