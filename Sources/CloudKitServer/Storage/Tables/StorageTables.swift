/// All tables of the storage.
///
/// `partition` stands for (container, environment, scope, owner). It leads every primary key and
/// unique index of the partition tables, so that each table can be distributed by it; a test checks
/// every table and every statement for that.
enum StorageTables {
  static var all: [StorageTable] { local + directory + partitioned }

  // MARK: The service itself

  static let local = [service, events]

  static let service = StorageTable(
    "service",
    .local,
    [.text("name"), .bytes("value")],
    key: ["name"]
  )

  /// The events of commits, until they expire.
  static let events = StorageTable(
    "events",
    .local,
    [
      .integer("transaction_id"), .integer("number"), .integer("partition"), .integer("at"),
      .bytes("body"),
    ],
    key: ["transaction_id", "number"],
    indexes: [.init("events_by_time", ["at"])]
  )

  // MARK: Partitions

  static let partitioned = [
    databases, zones, records, departures, references, assetUses, activeIndexes, indexEntries,
    replies, replyDevices, subscriptions,
  ]

  static let databases = StorageTable(
    "databases",
    .partition,
    [.integer("partition"), .integer("counter"), .integer("indexes")],
    key: ["partition"]
  )

  static let zones = StorageTable(
    "zones",
    .partition,
    [
      .integer("partition"), .text("name"), .integer("number"), .integer("change"),
      .text("ending").optional,
      // Removing tombstones does not change the counter.
      .integer("horizon").keepingGreatest(in: "zones", sameBy: "number"),
    ],
    key: ["partition", "name"],
    indexes: [.init("zones_by_change", ["partition", "change"])]
  )

  static let records = StorageTable(
    "records",
    .partition,
    [.integer("partition")] + RecordColumn.allCases.map(\.definition),
    key: ["partition", "zone", "name"],
    indexes: [
      .init("records_by_change", ["partition", "zone", "change"], naming: "change > 0"),
      .init("records_by_type", ["partition", "type", "zone", "name"], where: "deleted = 0"),
      .init(
        "records_by_share",
        ["partition", "zone", "share", "seen"],
        where: "share IS NOT NULL"
      ),
      .init("records_by_parent", ["partition", "zone", "parent"], where: "parent IS NOT NULL"),
      .init("records_by_age", ["partition", "zone", "modified_at"], where: "deleted = 1"),
    ],
    hasLargeRows: true
  )

  /// The records that left a share.
  static let departures = StorageTable(
    "departures",
    .partition,
    [
      .integer("partition"), .integer("zone"), .text("share"), .integer("exited"),
      .integer("entered"), .text("name"), .text("type"), .integer("at"),
    ],
    key: ["partition", "zone", "share", "exited"]
  )

  static let references = StorageTable(
    "record_references",
    .partition,
    [
      .integer("partition"), .integer("zone"), .text("target"), .text("source"), .text("action"),
    ],
    key: ["partition", "zone", "target", "source", "action"],
    indexes: [
      .init("references_by_source", ["partition", "zone", "source"], naming: "source <> ''")
    ]
  )

  static let assetUses = StorageTable(
    "asset_uses",
    .partition,
    [.integer("partition"), .integer("zone"), .text("name"), .text("digest")],
    key: ["partition", "zone", "name", "digest"]
  )

  /// The fields that have index entries, and the progress of filling.
  static let activeIndexes = StorageTable(
    "active_indexes",
    .partition,
    [
      .integer("partition"), .text("type"), .text("field"), .integer("encoding"),
      .integer("ready"), .integer("filled_zone"), .text("filled_name"),
    ],
    key: ["partition", "type", "field"]
  )

  static let indexEntries = StorageTable(
    "index_entries",
    .partition,
    [
      .integer("partition"), .integer("zone"), .text("type"), .text("field"), .bytes("value"),
      .text("name"),
    ],
    key: ["partition", "zone", "type", "field", "value", "name"]
  )

  static let replies = StorageTable(
    "replies",
    .partition,
    [
      .integer("partition"), .text("user_record"), .text("device"), .integer("sequence"),
      .bytes("body"),
    ],
    key: ["partition", "user_record", "device", "sequence"]
  )

  /// When a user's device last sent a batch with a sequence.
  static let replyDevices = StorageTable(
    "reply_devices",
    .partition,
    [.integer("partition"), .text("user_record"), .text("device"), .integer("at")],
    key: ["partition", "user_record", "device"],
    indexes: [.init("reply_devices_by_time", ["partition", "at"])]
  )

  static let subscriptions = StorageTable(
    "subscriptions",
    .partition,
    [
      .integer("partition"), .text("user_record"), .text("id"), .text("type"), .bytes("body"),
    ],
    key: ["partition", "user_record", "id"],
    indexes: [.init("subscriptions_by_type", ["partition", "type"])]
  )

  // MARK: Directory

  static let directory = [
    partitions, containers, schemas, accounts, users, apiTokens, sessions, devices, shortGUIDs,
    shareLinks, entries,
  ]

  /// Small entries, which are looked up by name or owner and written as a whole.
  static let entries = StorageTable(
    "directory_entries",
    .directory,
    [
      .text("kind"), .text("name"), .text("owner"), .integer("revision"), .integer("expires"),
      .bytes("body"),
    ],
    key: ["kind", "name"],
    indexes: [
      .init("directory_entries_by_owner", ["kind", "owner", "name"], naming: "owner <> ''"),
      .init("directory_entries_by_expiry", ["expires"]),
    ]
  )

  static let partitions = StorageTable(
    "partitions",
    .directory,
    [
      .integer("partition"), .text("container"), .text("environment"), .text("scope"),
      .text("owner"),
    ],
    key: ["partition"],
    indexes: [
      .init(
        "partitions_by_key",
        ["container", "environment", "scope", "owner"],
        isUnique: true
      )
    ]
  )

  static let containers = StorageTable(
    "containers",
    .directory,
    [.text("container")],
    key: ["container"]
  )

  static let schemas = StorageTable(
    "schemas",
    .directory,
    [.text("container"), .text("environment"), .integer("version"), .bytes("body")],
    key: ["container", "environment"]
  )

  static let accounts = StorageTable(
    "accounts",
    .directory,
    StoredAccount.columns,
    key: ["id"],
    indexes: [
      .init("accounts_by_name", ["folded_name"], isUnique: true),
      .init("accounts_by_address", ["email_address"], isFolded: true),
    ]
  )

  static let users = StorageTable(
    "users",
    .directory,
    StoredUser.columns,
    key: ["container", "account"],
    indexes: [.init("users_by_name", ["container", "record_name"], isUnique: true)]
  )

  static let apiTokens = StorageTable(
    "api_tokens",
    .directory,
    StoredAPIToken.columns,
    key: ["token"]
  )

  static let sessions = StorageTable(
    "sessions",
    .directory,
    StoredSession.columns,
    key: ["digest"]
  )

  static let devices = StorageTable(
    "devices",
    .directory,
    StoredDevice.columns,
    key: ["token"],
    indexes: [.init("devices_by_user", ["container", "environment", "user_record"])]
  )

  static let shortGUIDs = StorageTable(
    "short_guids",
    .directory,
    StoredShortGUID.columns,
    key: ["guid"]
  )

  static let shareLinks = StorageTable(
    "share_links",
    .directory,
    StoredShareLink.columns,
    key: ["container", "environment", "user_record", "partition", "zone", "share"]
  )
}
