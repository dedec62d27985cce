import Foundation
import WatershedSQLite

/// The mirroring's own tables in the file of its store.
///
/// They are written through the connection of the transaction that writes the objects, so data,
/// change tags and tokens commit together. Objects are identified by entity name and key, so that
/// the tables survive a migration that renumbers entities. Core Data never reads them.
package struct MirrorMetadata {
  package let connection: SQLiteConnection

  package init(_ connection: SQLiteConnection) {
    self.connection = connection
  }

  /// Incremented with each change of the tables.
  package static let version: Int64 = 1

  private static let tables = [
    """
    CREATE TABLE IF NOT EXISTS WSMIRROR_META (
      KEY TEXT PRIMARY KEY, VALUE BLOB
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE IF NOT EXISTS WSMIRROR_ZONE (
      NAME TEXT PRIMARY KEY, TOKEN BLOB, GENERATION INTEGER NOT NULL DEFAULT 0,
      REREADING INTEGER NOT NULL DEFAULT 0, SAVED INTEGER NOT NULL DEFAULT 0
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE IF NOT EXISTS WSMIRROR_RECORD (
      ID INTEGER PRIMARY KEY, NAME TEXT NOT NULL UNIQUE, TYPE TEXT NOT NULL,
      ENTITY TEXT NOT NULL, PK INTEGER, TAG TEXT, SYSTEM BLOB, BASE BLOB,
      PENDING INTEGER NOT NULL DEFAULT 0, PROPERTIES TEXT NOT NULL DEFAULT '',
      EDGES TEXT NOT NULL DEFAULT '', GROUPING INTEGER NOT NULL DEFAULT 0,
      SEQUENCE INTEGER, SENTKIND INTEGER NOT NULL DEFAULT 0, SENT TEXT NOT NULL DEFAULT '',
      PARKED TEXT, GENERATION INTEGER NOT NULL DEFAULT 0
    )
    """,
    "CREATE UNIQUE INDEX IF NOT EXISTS WSMIRROR_RECORD_OBJECT ON WSMIRROR_RECORD (ENTITY, PK)",
    """
    CREATE INDEX IF NOT EXISTS WSMIRROR_RECORD_PENDING ON WSMIRROR_RECORD (GROUPING, ID)
      WHERE PENDING <> 0 AND PARKED IS NULL
    """,
    """
    CREATE INDEX IF NOT EXISTS WSMIRROR_RECORD_EDITED ON WSMIRROR_RECORD (ENTITY, ID)
      WHERE PENDING = 1 AND TAG IS NOT NULL
    """,
    "CREATE INDEX IF NOT EXISTS WSMIRROR_RECORD_EDGES ON WSMIRROR_RECORD (ID) WHERE EDGES <> ''",
    """
    CREATE INDEX IF NOT EXISTS WSMIRROR_RECORD_SENT ON WSMIRROR_RECORD (SEQUENCE)
      WHERE SEQUENCE IS NOT NULL
    """,
    """
    CREATE TABLE IF NOT EXISTS WSMIRROR_EDGE (
      ID INTEGER PRIMARY KEY, NAME TEXT NOT NULL UNIQUE, FIRSTENTITY TEXT NOT NULL,
      FIRSTRELATIONSHIP TEXT NOT NULL, FIRSTRECORD TEXT NOT NULL, SECONDENTITY TEXT NOT NULL,
      SECONDRELATIONSHIP TEXT NOT NULL, SECONDRECORD TEXT NOT NULL, TAG TEXT, SYSTEM BLOB,
      PENDING INTEGER NOT NULL DEFAULT 0, GROUPING INTEGER NOT NULL DEFAULT 0,
      SEQUENCE INTEGER, SENTKIND INTEGER NOT NULL DEFAULT 0, LINKED INTEGER NOT NULL DEFAULT 0,
      PARKED TEXT, GENERATION INTEGER NOT NULL DEFAULT 0
    )
    """,
    """
    CREATE INDEX IF NOT EXISTS WSMIRROR_EDGE_FIRST
      ON WSMIRROR_EDGE (FIRSTRECORD, FIRSTRELATIONSHIP)
    """,
    """
    CREATE INDEX IF NOT EXISTS WSMIRROR_EDGE_SECOND
      ON WSMIRROR_EDGE (SECONDRECORD, SECONDRELATIONSHIP)
    """,
    // One link of an object with many: the other indexes find all of them.
    """
    CREATE INDEX IF NOT EXISTS WSMIRROR_EDGE_ENDS ON WSMIRROR_EDGE (FIRSTRECORD, SECONDRECORD)
    """,
    """
    CREATE INDEX IF NOT EXISTS WSMIRROR_EDGE_PENDING ON WSMIRROR_EDGE (GROUPING, ID)
      WHERE PENDING <> 0 AND PARKED IS NULL
    """,
    """
    CREATE INDEX IF NOT EXISTS WSMIRROR_EDGE_SENT ON WSMIRROR_EDGE (SEQUENCE)
      WHERE SEQUENCE IS NOT NULL
    """,
    """
    CREATE INDEX IF NOT EXISTS WSMIRROR_RECORD_PARKED ON WSMIRROR_RECORD (ID)
      WHERE PARKED IS NOT NULL
    """,
    """
    CREATE INDEX IF NOT EXISTS WSMIRROR_EDGE_PARKED ON WSMIRROR_EDGE (ID)
      WHERE PARKED IS NOT NULL
    """,
    """
    CREATE TABLE IF NOT EXISTS WSMIRROR_PENDINGLINK (
      RECORD TEXT NOT NULL, PROPERTY TEXT NOT NULL, TARGET TEXT, ISONETOONE INTEGER NOT NULL,
      PRIMARY KEY (RECORD, PROPERTY)
    ) WITHOUT ROWID
    """,
    "CREATE INDEX IF NOT EXISTS WSMIRROR_PENDINGLINK_TARGET ON WSMIRROR_PENDINGLINK (TARGET)",
    """
    CREATE TABLE IF NOT EXISTS WSMIRROR_BATCH (
      SEQUENCE INTEGER PRIMARY KEY, PAYLOAD BLOB NOT NULL
    )
    """,
    """
    CREATE TABLE IF NOT EXISTS WSMIRROR_EVENT (
      ID INTEGER PRIMARY KEY AUTOINCREMENT, IDENTIFIER TEXT NOT NULL UNIQUE,
      TYPE INTEGER NOT NULL, STARTED REAL NOT NULL, ENDED REAL, SUCCEEDED INTEGER NOT NULL,
      ERRORDOMAIN TEXT, ERRORCODE INTEGER, ERRORREASON TEXT
    )
    """,
    """
    CREATE TABLE IF NOT EXISTS WSMIRROR_UNREADABLE (
      NAME TEXT PRIMARY KEY, REASON TEXT NOT NULL
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE IF NOT EXISTS WSMIRROR_GONEEDGE (NAME TEXT PRIMARY KEY) WITHOUT ROWID
    """,
    """
    CREATE TABLE IF NOT EXISTS WSMIRROR_REMOVEDEDGE (NAME TEXT PRIMARY KEY) WITHOUT ROWID
    """,
    """
    CREATE TABLE IF NOT EXISTS WSMIRROR_GONERECORD (NAME TEXT PRIMARY KEY) WITHOUT ROWID
    """,
    """
    CREATE TABLE IF NOT EXISTS WSMIRROR_ARRIVED (NAME TEXT PRIMARY KEY) WITHOUT ROWID
    """,
    """
    CREATE TABLE IF NOT EXISTS WSMIRROR_UNSENT (
      ID INTEGER PRIMARY KEY AUTOINCREMENT, NAME TEXT NOT NULL UNIQUE, ENTITY TEXT NOT NULL,
      PK INTEGER
    )
    """,
    "CREATE INDEX IF NOT EXISTS WSMIRROR_UNSENT_OBJECT ON WSMIRROR_UNSENT (ENTITY, PK)",
    """
    CREATE TABLE IF NOT EXISTS WSMIRROR_LOSTDELETION (
      ID INTEGER PRIMARY KEY AUTOINCREMENT, NAME TEXT NOT NULL UNIQUE
    )
    """,
    """
    CREATE TABLE IF NOT EXISTS WSMIRROR_TRUSTED (
      ID INTEGER PRIMARY KEY, RECORD TEXT NOT NULL, BASE BLOB NOT NULL
    )
    """,
    "CREATE INDEX IF NOT EXISTS WSMIRROR_TRUSTED_RECORD ON WSMIRROR_TRUSTED (RECORD)",
    """
    CREATE TABLE IF NOT EXISTS WSMIRROR_RECOVERY (
      ID INTEGER PRIMARY KEY AUTOINCREMENT, RECORD TEXT NOT NULL, ENTITY TEXT NOT NULL,
      REASON TEXT NOT NULL, NOTED REAL NOT NULL, FIELDS BLOB NOT NULL
    )
    """,
  ]

  /// Creates the tables and indexes that are missing.
  package func open() throws {
    for sql in Self.tables { try connection.execute(sql) }
    if try meta(.version) == nil { try setMeta(.version, .integer(Self.version)) }
    try requireKnownVersion()
  }

  /// Refuses tables that another version of this library wrote.
  package func requireKnownVersion() throws {
    let found = try integer(.version)
    guard found == Self.version else {
      throw MirroringErrorCode.metadataUnreadable.error(
        "The store's mirroring tables are of version \(found.map(String.init) ?? "nil"), and this "
          + "library knows version \(Self.version). Open the store with the library that wrote it."
      )
    }
  }

  // MARK: Single values

  /// The keys of values that a store has once.
  package enum MetaKey: String, Sendable {
    case version
    /// The last history transaction all changes of which are folded into the metadata.
    case historyTransaction
    /// The last folded change of the transaction after that one, while it is folded in parts.
    case historyChange
    /// The last history transaction when an opening of the store made the values of objects that were never sent
    /// their base.
    case trustedTransaction
    /// The record name of the user whose database the store mirrors.
    case userRecordName
    /// The container that the store is mirrored with.
    case containerIdentifier
    /// The openings of the store, each with the history transaction before it.
    case openings
    /// The number of the last batch.
    case sequence
    /// The device of the last batch that was settled.
    case settledDevice
    /// The device, as of batches, that last began to apply a page of the zone's feed.
    case importingDevice
    /// When that device last applied a part of a page that it has not ended yet, in milliseconds since 2001.
    case importingTime
    /// The zone's change token after a page that is not the last one of its feed.
    case openFeed
    /// The database's change token.
    case databaseToken
    /// The version hashes of the model that the last import used.
    case modelHashes
    /// The position of a scan of rows that the history does not record: entity and key.
    case scanPosition
    /// Set once the first scan is complete.
    case scanFinished
    /// Set while a scan that a gap of the history has requested is not complete.
    case scansGap
    /// The change token that the zone had before it began to be read from the start: it shows whether the
    /// server has the same zone still.
    case tokenBeforeRereading
    /// Set while the zone is read with a model that reads more than the last one.
    case readsWithNewModel
    /// The number fields whose type on the server differs from their attribute's.
    case fieldKinds
    /// The number of missing records or links that the last read from the start sent again, because
    /// they were too many to have been deleted.
    case keptMissing
  }

  package func meta(_ key: MetaKey) throws -> SQLiteValue? {
    try connection.scalar("SELECT VALUE FROM WSMIRROR_META WHERE KEY = ?", [.text(key.rawValue)])
  }

  package func setMeta(_ key: MetaKey, _ value: SQLiteValue?) throws {
    if let value {
      try connection.run(
        "INSERT OR REPLACE INTO WSMIRROR_META (KEY, VALUE) VALUES (?, ?)",
        [.text(key.rawValue), value]
      )
    } else {
      try connection.run("DELETE FROM WSMIRROR_META WHERE KEY = ?", [.text(key.rawValue)])
    }
  }

  package func text(_ key: MetaKey) throws -> String? {
    if case .text(let text) = try meta(key) { text } else { nil }
  }

  package func integer(_ key: MetaKey) throws -> Int64? {
    if case .integer(let number) = try meta(key) { number } else { nil }
  }

  package func blob(_ key: MetaKey) throws -> Data? {
    if case .blob(let data) = try meta(key) { data } else { nil }
  }

  // MARK: Zones

  /// Why a zone is read from the start, which determines what a missing record means.
  package enum Rereading: Int64, Hashable, Sendable {
    /// The change token is too old, or the model reads more: missing records were deleted.
    case expired = 1
    /// The server is another one, or was restored from a backup: missing records are sent again.
    case otherServer = 2
    /// Too many records are missing to have been deleted, or the server does not say why the token
    /// is invalid: missing records are sent again.
    case kept = 3

    /// The reason of a read that starts while another one is incomplete: the one of the two that
    /// deletes less.
    func combined(with other: Rereading?) -> Rereading {
      if self == .otherServer || other == .otherServer { return .otherServer }
      return self == .kept || other == .kept ? .kept : .expired
    }
  }

  /// The state of a zone.
  package struct Zone: Hashable, Sendable {
    package var name: String
    package var token: Data?
    /// Incremented with each read from the start.
    package var generation: Int64 = 0
    /// Why the zone is being read from the start; nil if it is not.
    package var rereading: Rereading?
    /// Whether the server has the zone.
    package var isSaved = false

    package init(name: String) { self.name = name }
  }

  package func zone(_ name: String) throws -> Zone {
    let found = try connection.query(
      "SELECT TOKEN, GENERATION, REREADING, SAVED FROM WSMIRROR_ZONE WHERE NAME = ?",
      [.text(name)]
    ) { row in
      var zone = Zone(name: name)
      zone.token = row.optionalBlob(0)
      zone.generation = row.int64(1)
      zone.rereading = Rereading(rawValue: row.int64(2))
      zone.isSaved = row.int64(3) != 0
      return zone
    }
    return found.first ?? Zone(name: name)
  }

  package func save(_ zone: Zone) throws {
    try connection.run(
      """
      INSERT OR REPLACE INTO WSMIRROR_ZONE (NAME, TOKEN, GENERATION, REREADING, SAVED)
      VALUES (?, ?, ?, ?, ?)
      """,
      [
        .text(zone.name), zone.token.map(SQLiteValue.blob) ?? .null, .integer(zone.generation),
        .integer(zone.rereading?.rawValue ?? 0), .integer(zone.isSaved ? 1 : 0),
      ]
    )
  }
}
