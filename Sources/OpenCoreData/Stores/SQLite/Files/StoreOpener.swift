import Effects
import Foundation
import WatershedSQLite

/// Opens or creates the file of a store, and throws for one that does not match the model.
///
/// A file is first read through a read-only connection, so one that is refused stays unchanged.
struct StoreOpener: @unchecked Sendable {
  // Sendable: the options are only read, and the objects in them are not changed.

  struct Opened {
    var connection: SQLiteConnection
    var schema: StoreSchema
    var identifier: String
    var metadata: [String: Any]
    var keepsHistory: Bool
    var isReadOnly: Bool
    var hasHistoryTables: Bool
    var tombstoneColumns: [String]
    /// The log that this reader created and must remove.
    var readersLog: ReadersLog?
  }

  let model: NSManagedObjectModel
  let configuration: String?
  let url: URL
  let effects: Effects
  let isInMemory: Bool
  private let type: String
  private let settings: StoreSettings
  private let options: [AnyHashable: Any]

  init(
    model: NSManagedObjectModel,
    configuration: String?,
    url: URL,
    options: [AnyHashable: Any],
    effects: Effects,
    type: String
  ) {
    self.model = model
    self.configuration =
      configuration == NSManagedObjectModel.defaultConfigurationName ? nil : configuration
    self.url = url
    self.effects = effects
    self.type = type
    isInMemory = type == NSInMemoryStoreType || StorePlace.isInMemory(url)
    settings = StoreSettings(options: options)
    self.options = options
  }

  func open() throws -> Opened {
    do {
      if isInMemory { return try create(SQLiteConnection(path: ":memory:")) }
      return try openFile()
    } catch let error as SQLiteError {
      throw StoreError.from(error, at: url.path, while: "opening").nsError
    } catch let error as StoreError {
      throw error.nsError
    }
  }

  /// A read-only connection.
  func openReader() throws -> SQLiteConnection {
    let connection = try SQLiteConnection(
      path: url.path,
      mode: readingMode,
      busyTimeout: settings.busyTimeout
    )
    try settings.apply(to: connection, isWriter: false)
    return connection
  }

  /// In a folder where SQLite cannot create the index of a log, a file without a log is read as
  /// immutable.
  private var readingMode: SQLiteConnection.Mode {
    get throws {
      let folder = url.deletingLastPathComponent().path
      if try FileSystem.isWritable(folder) { return .readOnly }
      return try FileSystem.size(of: url.path + "-wal") > 0 ? .readOnly : .immutable
    }
  }

  // MARK: Files

  /// Creates the store in an empty file, which reserves the path as with atomic stores.
  private func fillReservedFile() throws {
    guard !settings.isReadOnly else {
      throw StoreError(
        .fileReadCorrupt,
        "The file at \(url.path) is empty, so there is nothing to read.",
        remedy: "Open it once without NSReadOnlyPersistentStoreOption, which makes it a store.",
        context: [NSFilePathErrorKey: url.path]
      )
    }
    do {
      _ = try create(SQLiteConnection(path: url.path, busyTimeout: settings.busyTimeout))
    } catch let error as SQLiteError {
      // Another process may have filled it meanwhile: its store is opened.
      guard try FileSystem.size(of: url.path) > 0 else { throw error }
    }
  }

  private func openFile() throws -> Opened {
    if try !FileSystem.isThere(url.path) {
      guard !settings.isReadOnly else {
        throw StoreError(
          .fileReadNoSuchFile,
          "There is no store at \(url.path).",
          remedy: "Open it once without NSReadOnlyPersistentStoreOption, which creates it.",
          context: ["NSFilePath": url.path]
        )
      }
      if try StorePlace.hasLog(of: url) { try reserveFile() } else { try createFile() }
    } else if !settings.isReadOnly {
      StoreDraft.sweep(beside: url)
    }
    // SQLite removes the log of an empty file: a store in WAL mode has its first page in the file.
    if try FileSystem.size(of: url.path) == 0 { try fillReservedFile() }
    var file = try StoreFile.inspect(url, busyTimeout: settings.busyTimeout)
    try file.requireKnownFormat()
    if !settings.ignoresVersions, let mismatch = mismatch(of: file) {
      guard StoreMigration.isWanted(options), !settings.isReadOnly else { throw mismatch }
      try StoreMigration(
        model: model,
        configuration: configuration,
        url: url,
        options: options,
        effects: effects
      )
      .run(file)
      file = try StoreFile.inspect(url, busyTimeout: settings.busyTimeout)
      if let mismatch = self.mismatch(of: file) { throw mismatch }
    }
    let schema = try StoreSchema.resolved(
      model: model,
      configuration: configuration,
      against: file.tables
    )
    // History that was begun is continued, or a mirroring that reads it would miss changes. A store
    // whose options refuse history is opened read-only; Core Data does so without the option too.
    let isLocked = try !FileSystem.isWritable(url.path)
    if isLocked, !settings.isReadOnly {
      StoreLog.warning(
        "Attempt to add read-only file at path \(url.absoluteString) read/write. Adding it "
          + "read-only instead. This will be a hard error in the future; you must specify the "
          + "NSReadOnlyPersistentStoreOption."
      )
    }
    let isReadOnly =
      isLocked || settings.isReadOnly || (file.hasHistory && settings.historyIsRefused)
    let readersLog = isReadOnly ? ReadersLog(of: url) : nil
    let connection = try SQLiteConnection(
      path: url.path,
      mode: isReadOnly ? readingMode : .readWrite,
      busyTimeout: settings.busyTimeout
    )
    try settings.apply(to: connection, isWriter: !isReadOnly)
    let keepsHistory = !isReadOnly && (file.hasHistory || settings.wantsHistory)
    if keepsHistory {
      try addHistoryTables(connection, file: file, tombstones: schema.tombstoneCount)
    }
    return Opened(
      connection: connection,
      schema: schema,
      identifier: file.identifier,
      metadata: file.metadata,
      keepsHistory: keepsHistory,
      isReadOnly: isReadOnly,
      hasHistoryTables: keepsHistory || file.hasHistory,
      tombstoneColumns: try Self.tombstoneColumns(connection),
      readersLog: readersLog
    )
  }

  /// The difference between the file and the model; nil where they match.
  private func mismatch(of file: StoreFile) -> StoreError? {
    ModelCompatibility(model: model, configuration: configuration, file: file, url: url).mismatch()
  }

  /// Creates an empty file at the path.
  ///
  /// A file with pages that is put beside the log of a former store would be read together with that log:
  /// the former store's rows would come back. Removing the log here would take it from another process
  /// that has just created the store; SQLite removes it under its own lock.
  private func reserveFile() throws {
    do {
      try FileSystem.makeEmptyFile(url.path)
    } catch let error as CocoaError where error.code == .fileWriteFileExists {
      // Another process created the file first.
    }
  }

  /// Creates the file under another name and links it to its path, so that a crash leaves no
  /// incomplete store, and of two processes that create it the second opens the first one's.
  private func createFile() throws {
    let folder = url.deletingLastPathComponent()
    guard try FileSystem.isThere(folder.path) else {
      throw cannotCreate("There is no folder \(folder.path).", number: ENOENT)
    }
    let draft = StoreDraft(beside: url, effects: effects)
    defer { draft.remove() }
    let connection: SQLiteConnection
    do {
      connection = try SQLiteConnection(path: draft.url.path)
    } catch {
      throw cannotCreate(
        "The folder \(folder.path) cannot be written.",
        number: EACCES,
        cause: error
      )
    }
    do {
      // The connection must be closed before the file gets its name.
      _ = try create(consume connection)
    }
    do {
      try FileSystem.move(draft.url.path, toFree: url.path)
    } catch let error as CocoaError where error.code == .fileWriteFileExists {
      // Another process created the file first; open that.
    }
  }

  private func cannotCreate(
    _ reason: String,
    number: Int32,
    cause: (any Error)? = nil
  ) -> StoreError {
    StoreError(
      .fileWriteUnknown,
      "The store at \(url.path) cannot be created. \(reason)",
      remedy: "Create the folder first, and see that it may be written.",
      context: [
        NSFilePathErrorKey: url.path,
        // Core Data's own text.
        "reason": "Failed to create file; code = \(number)",
      ],
      cause: cause
    )
  }

  // MARK: Tables

  private func create(_ connection: SQLiteConnection) throws -> Opened {
    let schema = try StoreSchema.new(model: model, configuration: configuration)
    let identifier = effects.uuid().uuidString
    var metadata = StoreMetadata.new(for: schema)
    try connection.execute("PRAGMA page_size = 4096; PRAGMA auto_vacuum = 2")
    try connection.transaction {
      for statement in SchemaStatements(schema: schema, hasHistory: settings.wantsHistory)
        .all()
      {
        try connection.execute(statement)
      }
      for entity in schema.entities {
        try insertNumber(entity.number, entity.name, entity.superNumber, connection)
      }
      if settings.wantsHistory {
        for (number, name) in HistoryTables.entities {
          try insertNumber(number, name, 0, connection)
        }
      }
      try connection.run(
        "INSERT INTO Z_METADATA (Z_VERSION, Z_UUID, Z_PLIST) VALUES (?, ?, ?)",
        [
          .integer(StoreMetadata.knownVersion), .text(identifier),
          .blob(StoreMetadata.data(metadata)),
        ]
      )
      try connection.run(
        "INSERT INTO Z_MODELCACHE (Z_CONTENT) VALUES (?)",
        [.blob(ModelArchive.modelCache(for: model))]
      )
    }
    metadata[NSStoreUUIDKey] = identifier
    metadata[NSStoreTypeKey] = type
    return Opened(
      connection: connection,
      schema: schema,
      identifier: identifier,
      metadata: metadata,
      keepsHistory: settings.wantsHistory,
      isReadOnly: false,
      hasHistoryTables: settings.wantsHistory,
      tombstoneColumns: try Self.tombstoneColumns(connection)
    )
  }

  private func addHistoryTables(
    _ connection: SQLiteConnection,
    file: StoreFile,
    tombstones: Int
  ) throws {
    let present = file.tables.columns["ACHANGE"]?.filter { $0.hasPrefix("ZTOMBSTONE") }.count ?? 0
    guard !file.hasHistory || present < tombstones else { return }
    try connection.transaction {
      // Checked again under the lock: another process may be opening the store too.
      let columns = try connection.query("SELECT name FROM pragma_table_info('ACHANGE')") {
        $0.text(0)
      }
      if columns.isEmpty {
        for statement in HistoryTables.statements(tombstones: tombstones) {
          try connection.execute(statement)
        }
        for (number, name) in HistoryTables.entities {
          try connection.run("DELETE FROM Z_PRIMARYKEY WHERE Z_ENT = ?", [.integer(Int64(number))])
          try insertNumber(number, name, 0, connection)
        }
      } else {
        for index in 0..<tombstones where !columns.contains("ZTOMBSTONE\(index)") {
          try connection.execute("ALTER TABLE ACHANGE ADD COLUMN ZTOMBSTONE\(index) BLOB")
        }
      }
    }
  }

  private static func tombstoneColumns(_ connection: SQLiteConnection) throws -> [String] {
    let columns = try connection.query("SELECT name FROM pragma_table_info('ACHANGE')") {
      $0.text(0)
    }
    return (0..<columns.count).map { "ZTOMBSTONE\($0)" }.filter(columns.contains)
  }

  private func insertNumber(
    _ number: Int32,
    _ name: String,
    _ superNumber: Int32,
    _ connection: SQLiteConnection
  ) throws {
    try connection.run(
      "INSERT INTO Z_PRIMARYKEY (Z_ENT, Z_NAME, Z_SUPER, Z_MAX) VALUES (?, ?, ?, 0)",
      [.integer(Int64(number)), .text(name), .integer(Int64(superNumber))]
    )
  }
}
