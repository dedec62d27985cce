import CloudKitWebServices
import Foundation

/// Reads records of a database into a folder.
///
/// Zones are read by their change feeds; the default zone and the public database have none and are
/// read by a query for each record type.
struct RecordExport {
  let connection: DatabaseConnection
  let folder: RecordFolder
  private let lines: LineFile
  private let zoneLines: LineFile
  private(set) var result: Result
  /// Records that were read a second time, or deleted, after they had been written.
  private var superseded: Set<Place> = []
  private var written: Set<Place> = []

  struct Result: Encodable {
    var path: String
    var zones = 0
    var records = 0
    var assets = 0
    /// The bytes of the assets.
    var bytes: Int64 = 0
    /// Shares, which are not exported.
    var shares = 0
  }

  private struct Place: Hashable {
    var zone: String
    var name: String
  }

  /// Creates the folder.
  init(_ connection: DatabaseConnection, to folder: RecordFolder, named path: String) throws {
    self.connection = connection
    self.folder = folder
    result = Result(path: path)
    try FileManager.default.createDirectory(
      at: folder.url.appendingPathComponent(RecordFolder.assetFolder),
      withIntermediateDirectories: true,
      attributes: [.posixPermissions: 0o700]
    )
    lines = try LineFile(folder.records)
    zoneLines = try LineFile(folder.zones)
  }

  /// Exports the zones of these names, or all; `types` are the record types of zones without a feed.
  mutating func run(zones names: [String], types: [String]) async throws {
    let found: ZonesResponse = try await connection.patiently(.listZones, [String: String]())
    let zones = try found.zones.map { try $0.get().zoneID }
    if let missing = names.first(where: { name in !zones.contains { $0.zoneName == name } }) {
      throw CommandFailure(
        "ZONE_NOT_FOUND",
        what: "nothing was exported",
        why: "there is no zone \(missing)",
        next: "watershed zones list"
      )
    }
    for zone in zones where names.isEmpty || names.contains(zone.zoneName) {
      result.zones += 1
      try zoneLines.write(try WireCoding.encode(ZoneID(zoneName: zone.zoneName)))
      if zone.isDefault || connection.scope == .public {
        for type in try await recordTypes(types) { try await query(type, in: zone) }
      } else {
        try await readFeed(of: zone)
      }
    }
    try lines.close()
    try zoneLines.close()
    if !superseded.isEmpty { try removeSuperseded() }
  }

  private func recordTypes(_ given: [String]) async throws -> [String] {
    if !given.isEmpty { return given }
    guard let known = try await connection.recordTypes() else {
      throw CommandFailure(
        "BAD_REQUEST",
        what: "nothing was exported",
        why: "the default zone has no change feed, and only an administrator can list record types",
        next: "name the types with --record-type, or the other zones with --zone-name",
        exit: ExitCodes.usage
      )
    }
    return known
  }

  // MARK: Reading

  private mutating func readFeed(of zone: ZoneID) async throws {
    var token: String?
    while true {
      let request = ZoneChangesRequest(zones: [ZoneChangesOptions(zoneID: zone, syncToken: token)])
      let reply: ZoneChangesResponse = try await connection.patiently(.zoneChanges, request)
      guard let page = try reply.zones.first?.get() else { return }
      for item in page.records { try await write(try item.get(), of: zone) }
      guard page.moreComing == true, let next = page.syncToken, next != token else { return }
      token = next
    }
  }

  private mutating func query(_ type: String, in zone: ZoneID) async throws {
    var marker: String?
    repeat {
      let request = QueryRecordsRequest(
        query: RecordQuery(recordType: type, filterBy: [], sortBy: []),
        zoneID: zone,
        continuationMarker: marker
      )
      let page = try await connection.page(request)
      for item in page.records { try await write(try item.get(), of: zone) }
      marker = page.continuationMarker
    } while marker != nil
  }

  // MARK: Writing

  private mutating func write(_ record: RecordDictionary, of zone: ZoneID) async throws {
    let place = Place(zone: zone.zoneName, name: record.recordName ?? "")
    if written.contains(place) {
      superseded.insert(place)
      result.records -= 1
    }
    guard record.deleted != true else {
      written.remove(place)
      return
    }
    guard record.sharing == nil else {
      result.shares += 1
      return
    }
    var record = record
    record.zoneID = ZoneID(zoneName: zone.zoneName)
    record.share = nil
    record.hasPluginFields = false
    let parentZone = Self.own(record.parent?.zoneID, zone)
    record.parent?.zoneID = parentZone
    for (name, field) in record.fields ?? [:] {
      record.fields?[name]?.content = try await moved(field.content, zone)
    }
    written.insert(place)
    result.records += 1
    try lines.write(try WireCoding.encode(record))
  }

  /// References to zones of the same owner, and files of this folder.
  private mutating func moved(
    _ content: FieldContent,
    _ zone: ZoneID
  ) async throws -> FieldContent {
    func placed(_ reference: ReferenceValue) -> ReferenceValue {
      var reference = reference
      reference.zoneID = Self.own(reference.zoneID, zone)
      return reference
    }
    switch content {
    case .reference(let value): return .reference(placed(value))
    case .referenceList(let values): return .referenceList(values.map(placed))
    case .asset(let value): return .asset(try await downloaded(value))
    case .assetList(let values):
      var files: [AssetValue] = []
      for value in values { files.append(try await downloaded(value)) }
      return .assetList(files)
    default: return content
    }
  }

  /// The zone without its owner, if that is the owner of the exported zone.
  private static func own(_ zone: ZoneID?, _ exported: ZoneID) -> ZoneID? {
    guard var zone else { return nil }
    zone.zoneType = nil
    if zone.ownerRecordName == exported.ownerRecordName { zone.ownerRecordName = nil }
    return zone
  }

  private mutating func downloaded(_ asset: AssetValue) async throws -> AssetValue {
    guard let url = asset.downloadURL else {
      throw CommandFailure(
        "FAILED",
        what: "nothing was exported",
        why: "a record has a file without a URL",
        next: "watershed doctor"
      )
    }
    let path = "\(RecordFolder.assetFolder)/\(result.assets)"
    let size = try await connection.download(url, to: folder.url.appendingPathComponent(path))
    guard asset.size == nil || asset.size == size else {
      throw CommandFailure(
        "FAILED",
        what: "nothing was exported",
        why: "a file of \(asset.size ?? 0) bytes arrived with \(size)",
        next: "try again"
      )
    }
    result.assets += 1
    result.bytes += size
    return AssetValue(fileChecksum: asset.fileChecksum, size: size, downloadURL: path)
  }

  /// Leaves of each record that changed meanwhile its last line, and none if it was deleted.
  private func removeSuperseded() throws {
    func place(_ line: Data) throws -> Place {
      let record = try WireCoding.decode(RecordDictionary.self, from: line)
      return Place(zone: record.zoneID?.zoneName ?? "", name: record.recordName ?? "")
    }
    var left: [Place: Int] = [:]
    var reader = try LineReader(folder.records)
    while let line = try reader.next() {
      let place = try place(line)
      if superseded.contains(place) { left[place, default: 0] += 1 }
    }
    reader.close()
    let copy = folder.url.appendingPathComponent("records.partial")
    let kept = try LineFile(copy)
    reader = try LineReader(folder.records)
    while let line = try reader.next() {
      let place = try place(line)
      if let count = left[place] {
        left[place] = count - 1
        guard count == 1, written.contains(place) else { continue }
      }
      try kept.write(line)
    }
    reader.close()
    try kept.close()
    try FileManager.default.removeItem(at: folder.records)
    try FileManager.default.moveItem(at: copy, to: folder.records)
  }
}
