import CloudKitWebServices
import Crypto
import Effects
import Foundation
import Logging

/// Everything that an account owns, as a streamed tar archive: one page of records, or one piece of
/// a file, is in memory at a time.
///
/// `Documentation/Operating/Accounts.md` describes the archive.
struct AccountExport: Sendable {
  typealias Sink = @Sendable (Data) async throws -> Void

  /// The manifest, the archive's last member: an archive without it is truncated.
  struct Summary: Codable, Hashable, Sendable {
    var records = 0
    var files = 0
    /// The records and files that could not be read, each in a sentence.
    var problems: [String] = []
  }

  /// Records of a page, and bytes of records after which a page ends.
  private static let pageRecords = 200
  private static let pageBytes = 262_144
  /// Pages of records that were changed since the export began: others may write without end.
  private static let latePages = 1000
  /// Sentences about what could not be read.
  private static let problemLimit = 1000

  let exports: AccountExports
  let account: StoredAccount

  func write(to sink: @escaping Sink) async throws {
    var summary = Summary()
    try await member("README.txt", Data(Self.readme.utf8), sink)
    try await member("account.json", try facts(), sink)
    try await writeAudit(to: sink)
    let users = try exports.storage.read { try $0.users(account: account.id) }
    for user in users.sorted(by: { $0.container < $1.container }) {
      for environment in ContainerEnvironment.allCases {
        try await write(user, environment, &summary, to: sink)
      }
    }
    try await member("complete.json", try WireCoding.encode(summary), sink)
    try await sink(TarArchive.end)
  }

  private static let readme = """
    The data of an account on this server.

    account.json   the account: names, addresses, devices and sign-ins
    audit.jsonl    what the account did, as the audit log has it, one line each
    containers/    for each app and environment the zones of the private database:
                   zone.json names the zone, records-*.jsonl have its records, one line each, as
                   CloudKit Web Services write them; a file of a record is at the path that its
                   field has as downloadURL, seen from the folder of the zone
    complete.json  the manifest; an archive without it is truncated

    A record that was changed during the download may occur twice: the later line is the newer one.

    """

  // MARK: The account

  private struct Facts: Encodable {
    struct User: Encodable {
      var container: String
      var userRecordName: String
      /// Whether others find the user there; nil if the user has not decided.
      var isDiscoverable: Bool?
    }

    var exported: Int64
    var givenName: String?
    var familyName: String?
    var phoneNumber: String?
    var isAdministrator: Bool
    var overview: AccountOverview
    var identities: [ExternalIdentity.Body]
    var users: [User]
  }

  private func facts() throws -> Data {
    let session = StoredSession(
      digest: "",
      container: PageSession.ownPage.rawValue,
      account: account.id,
      userRecordName: "",
      expires: 0,
      isKept: false
    )
    let overview = try exports.ownAccounts.overview(
      OwnAccount(account: account, session: session, sender: nil)
    )
    let facts = try exports.storage.read { snapshot in
      Facts(
        exported: exports.now,
        givenName: account.givenName,
        familyName: account.familyName,
        phoneNumber: try snapshot.phoneNumber(ofAccount: account.id),
        isAdministrator: try snapshot.state(of: account.id).0.isAdministrator,
        overview: overview,
        identities: try snapshot.entries(DirectoryRange(.identity, owner: account.id)).map {
          try WireCoding.decode(ExternalIdentity.Body.self, from: $0.body)
        },
        users: try snapshot.users(account: account.id).map {
          Facts.User(
            container: $0.container,
            userRecordName: $0.recordName,
            isDiscoverable: try snapshot.discoverability(of: account.id, in: $0.container)
          )
        }
      )
    }
    return try WireCoding.encode(facts)
  }

  /// Writes the audit entries of the user's actions; each page of them is a member of the archive.
  private func writeAudit(to sink: Sink) async throws {
    var after: String?
    var number = 1
    while true {
      let range = DirectoryRange(
        .audit,
        owner: account.id,
        after: after,
        limit: Self.pageRecords
      )
      let entries = try exports.storage.read { try $0.entries(range) }
      if entries.isEmpty, number > 1 { return }
      var lines = Data()
      for entry in entries { lines += entry.body + Data("\n".utf8) }
      let name = number == 1 ? "audit.jsonl" : "audit-\(number).jsonl"
      try await member(name, lines, sink)
      guard let last = entries.last?.key.name, entries.count == Self.pageRecords else { return }
      after = last
      number += 1
    }
  }

  // MARK: Databases

  private func write(
    _ user: StoredUser,
    _ environment: ContainerEnvironment,
    _ summary: inout Summary,
    to sink: @escaping Sink
  ) async throws {
    let owned = try exports.storage.read {
      try $0.partitions(container: user.container, owner: user.recordName)
    }
    let found = owned.first { $0.key.environment == environment && $0.key.scope == .private }
    guard let partition = found?.value else { return }
    let context = RequestContext(
      container: user.container,
      environment: environment,
      scope: .private,
      caller: .server(Principal(account: account.id, userRecordName: user.recordName)),
      isExtended: false,
      wantsExactDates: true,
      wantsSyncToken: false
    )
    let folder = "containers/\(Self.component(user.container))/\(environment.rawValue)/zones"
    let zones = try exports.storage.read { try $0.livingZones(in: partition) }
    var places = [(number: ZoneNumber.defaultZone, name: ZoneID.defaultZoneName)]
    places += zones.filter { $0.number != .defaultZone }.map { ($0.number, $0.name) }
    for place in places {
      let path = "\(folder)/\(Self.component(place.name))"
      let named = ZoneDirectory.id(named: place.name, owner: user.recordName)
      try await member("\(path)/zone.json", try WireCoding.encode(named), sink)
      try await write(
        ZonePart(partition: partition, zone: place.number, zones: zones, context: context),
        in: path,
        &summary,
        to: sink
      )
    }
  }

  /// A zone that is read.
  private struct ZonePart: Sendable {
    var partition: PartitionID
    var zone: ZoneNumber
    var zones: [StoredZone]
    var context: RequestContext
  }

  /// A page of records as lines, and the files that they name.
  private struct Page: Sendable {
    var lines = Data()
    var records = 0
    var files: [String] = []
    var problems: [String] = []
    var last: ChangeNumber?
  }

  private func write(
    _ part: ZonePart,
    in path: String,
    _ summary: inout Summary,
    to sink: @escaping Sink
  ) async throws {
    let begun = try exports.storage.read { try $0.database(part.partition).counter }
    var position = ChangeNumber.zero
    var number = 1
    var late = 0
    while late < Self.latePages {
      try checkAccount()
      let page = try await page(of: part, after: position)
      guard let last = page.last else { return }
      position = last
      if last > begun { late += 1 }
      summary.records += page.records
      note(page.problems, in: &summary)
      let digits = String(number)
      let name = String(repeating: "0", count: max(0, 6 - digits.count)) + digits
      try await member("\(path)/records-\(name).jsonl", page.lines, sink)
      number += 1
      for file in page.files {
        try await write(file, of: part.partition, in: path, &summary, to: sink)
      }
    }
  }

  private func page(of part: ZonePart, after position: ChangeNumber) async throws -> Page {
    try await exports.reads.run(.scan, for: part.context) { control in
      var page = Page()
      try exports.storage.read(control) { snapshot in
        page = Page()
        let rendering = RecordRendering(
          renderer: exports.renderer,
          partition: part.partition,
          zones: ZoneDirectory(
            part.zones,
            part.context,
            owner: try part.context.user().userRecordName
          ),
          context: part.context
        )
        let range = ChangeRange(
          zone: part.zone,
          after: position,
          includesTombstones: false,
          limit: Self.pageRecords,
          bytes: Self.pageBytes
        )
        for row in try snapshot.changes(in: part.partition, range) {
          page.last = row.change
          guard !row.isDeleted else { continue }
          do {
            page.lines += try line(of: row, rendering, &page.files) + Data("\n".utf8)
            page.records += 1
          } catch {
            // A record that cannot be read does not stop the export of the others.
            page.problems.append("The record \(row.text(.name)) cannot be read.")
            exports.logger.error(
              "a record cannot be exported",
              metadata: ["record": "\(row.text(.name))", "error": "\(error)"]
            )
          }
        }
      }
      return page
    }
  }

  /// A record as JSON, its files by their paths in the archive.
  private func line(
    of row: RecordRow,
    _ rendering: RecordRendering,
    _ files: inout [String]
  ) throws -> Data {
    var json = JSONWriter(capacity: 1024)
    let shape = RecordRendering.Shape(desiredKeys: nil, numbersAsStrings: false)
    try rendering.write(row, shape, to: &json)
    let bytes = json.finished()
    guard row.contents.contains(.assets) else { return bytes }
    var record = try WireCoding.decode(RecordDictionary.self, from: bytes)
    func placed(_ asset: AssetValue) -> AssetValue {
      var asset = asset
      guard let file = asset.downloadURL.flatMap({ exports.fileName(ofDownload: $0) }) else {
        return asset
      }
      if !files.contains(file) { files.append(file) }
      asset.downloadURL = "assets/\(file)"
      return asset
    }
    for (name, value) in record.fields ?? [:] {
      switch value.content {
      case .asset(let asset): record.fields?[name]?.content = .asset(placed(asset))
      case .assetList(let assets):
        record.fields?[name]?.content = .assetList(assets.map(placed))
      default: break
      }
    }
    record.hasPluginFields = true
    return try WireCoding.encode(record)
  }

  private func write(
    _ file: String,
    of partition: PartitionID,
    in path: String,
    _ summary: inout Summary,
    to sink: @escaping Sink
  ) async throws {
    try checkAccount()
    let place = AssetPlace(partition, file)
    guard let size = try await exports.assets.store.size(of: place) else {
      return note(["The file \(file) is not there."], in: &summary)
    }
    let name = "\(path)/assets/\(file)"
    try await sink(TarArchive.header(path: name, size: size, modified: exports.effects.now))
    if size > 0 { try await exports.assets.store.read(place, 0..<size, into: sink) }
    try await sink(TarArchive.padding(size))
    summary.files += 1
  }

  /// Ends an archive whose account was shut or has another password since its link was used.
  private func checkAccount() throws {
    let isOpen = try exports.storage.read { snapshot in
      guard let now = try snapshot.account(id: account.id) else { return false }
      return try now.passwordHash == account.passwordHash
        && !snapshot.state(of: account.id).0.isDisabled
    }
    guard isOpen else {
      throw ErrorDictionary(.accessDenied, "the account was disabled or has another password")
    }
  }

  // MARK: Members

  private func member(_ path: String, _ bytes: Data, _ sink: Sink) async throws {
    let size = Int64(bytes.count)
    try await sink(
      TarArchive.header(path: path, size: size, modified: exports.effects.now) + bytes
        + TarArchive.padding(size)
    )
  }

  private func note(_ problems: [String], in summary: inout Summary) {
    summary.problems += problems.prefix(max(0, Self.problemLimit - summary.problems.count))
  }

  /// A name as one part of a path, on every file system; a long one is cut, with a digest behind
  /// it.
  static func component(_ name: String) -> String {
    let escaped = name.utf8.map { byte -> String in
      switch UnicodeScalar(byte) {
      case "a"..."z", "A"..."Z", "0"..."9", "-", "_": String(UnicodeScalar(byte))
      case ".": "."
      default: "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
      }
    }.joined()
    let plain = escaped.allSatisfy { $0 == "." } ? escaped.replacing(".", with: "%2E") : escaped
    guard plain.utf8.count > 120 else { return plain }
    return "\(plain.prefix(80))-\(TokenDigest.of(name).prefix(16))"
  }
}
