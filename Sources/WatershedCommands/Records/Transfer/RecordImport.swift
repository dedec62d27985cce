import ArgumentParser
import CloudKitWebServices
import Foundation

/// Saves the records of a folder in a database.
///
/// Records that refer to others wait until those are saved. Running it again saves what is missing.
struct RecordImport {
  let connection: DatabaseConnection
  let folder: RecordFolder
  /// Whether existing records are replaced.
  let replaces: Bool
  private(set) var result = Result()
  private var waiting: [Waiting] = []

  private struct Waiting {
    var zone: ZoneID
    var operation: RecordOperation
    var error: ErrorDictionary
  }

  struct Result: Encodable {
    var created = 0
    var replaced = 0
    /// Records that exist already and were left unchanged.
    var unchanged = 0
    var failures: [Failure] = []
  }

  struct Failure: Encodable {
    var recordName: String
    var zoneName: String
    var code: String
    var reason: String
  }

  /// CloudKit's limit for one request.
  private static let recordsInBatch = 200
  /// The size of a batch in bytes of JSON; far below the limit of a request.
  private static let bytesInBatch = 1_000_000

  init(_ connection: DatabaseConnection, from folder: RecordFolder, replaces: Bool) {
    self.connection = connection
    self.folder = folder
    self.replaces = replaces
  }

  /// Parses every line, so that an unreadable one is found before anything is saved; the number of
  /// records.
  static func check(_ folder: RecordFolder) throws -> Int {
    var reader = try LineReader(folder.records)
    defer { reader.close() }
    var count = 0
    while let line = try reader.next() {
      _ = try input(line, reader.number)
      count += 1
    }
    return count
  }

  private static func input(_ line: Data, _ number: Int) throws -> RecordInput {
    let input: RecordInput
    do {
      input = try RecordInput(line)
    } catch let error as ValidationError {
      throw unreadable(number, error.message)
    }
    guard input.recordName != nil, input.recordType != nil else {
      throw unreadable(number, "a record has a recordName and a recordType.")
    }
    return input
  }

  private static func unreadable(_ line: Int, _ reason: String) -> CommandFailure {
    CommandFailure(
      "UNREADABLE_FILE",
      what: "nothing was imported",
      why: "records.ndjson:\(line): \(reason)",
      next: "correct or remove the line, and run the command again"
    )
  }

  mutating func run() async throws {
    if connection.scope != .public { try await createZones() }
    var reader = try LineReader(folder.records)
    defer { reader.close() }
    var batch: [RecordInput] = []
    var bytes = 0
    while let line = try reader.next() {
      let input = try Self.input(line, reader.number)
      let isFull =
        batch.count >= Self.recordsInBatch || bytes + line.count > Self.bytesInBatch
      if !batch.isEmpty, isFull || batch.last?.zone != input.zone {
        try await save(batch)
        batch = []
        bytes = 0
      }
      batch.append(input)
      bytes += line.count
    }
    if !batch.isEmpty { try await save(batch) }
    try await saveWaiting()
  }

  private func createZones() async throws {
    var reader = try LineReader(folder.zones)
    defer { reader.close() }
    let found: ZonesResponse = try await connection.patiently(.listZones, [String: String]())
    let known = Set(found.zones.compactMap(\.item?.zoneID.zoneName))
    while let line = try reader.next() {
      let zone = ZoneID(zoneName: try WireCoding.decode(ZoneID.self, from: line).zoneName)
      guard !zone.isDefault, !known.contains(zone.zoneName) else { continue }
      let request = ModifyZonesRequest(operations: [
        ZoneOperation(operationType: .create, zone: ZoneDictionary(zoneID: zone))
      ])
      let reply: ZonesResponse = try await connection.patiently(.modifyZones, request)
      for item in reply.zones { _ = try item.get() }
    }
  }

  // MARK: Saving

  /// Saves records of one zone.
  private mutating func save(_ batch: [RecordInput]) async throws {
    let zone = batch.first?.zone ?? .defaultZone
    let existing = try await existing(batch.compactMap(\.recordName), zone)
    var operations: [RecordOperation] = []
    for input in batch {
      let exists = existing.contains(input.recordName ?? "")
      if exists, !replaces {
        result.unchanged += 1
      } else {
        operations.append(try await operation(input, exists: exists))
      }
    }
    try await send(operations, zone)
  }

  private func existing(_ names: [String], _ zone: ZoneID) async throws -> Set<String> {
    let reply: RecordsResponse = try await connection.patiently(
      .lookupRecords,
      LookupRecordsRequest(
        records: names.map { LookupRecord(recordName: $0) },
        zoneID: zone,
        desiredKeys: []
      )
    )
    return Set(reply.records.compactMap(\.item?.recordName))
  }

  private func operation(_ input: RecordInput, exists: Bool) async throws -> RecordOperation {
    let type = input.recordType ?? ""
    var values: [String: FieldValue] = [:]
    for (name, field) in input.fields.sorted(by: { $0.key < $1.key }) {
      values[name] = try await field.fieldValue { source in
        guard case .download(let path) = source, let file = try folder.file(of: path) else {
          throw CommandFailure(
            "UNREADABLE_FILE",
            what: "\(input.recordName ?? "") was not saved",
            why: "\(name) names no file of the folder",
            next: "export the records again"
          )
        }
        guard FileManager.default.isReadableFile(atPath: file.path) else {
          throw CommandFailure(
            "UNREADABLE_FILE",
            what: "\(input.recordName ?? "") and the records after it were not saved",
            why: "the file \(file.path) of its field \(name) is missing or cannot be read",
            next: "export the records again, or restore the file, and import again"
          )
        }
        return try await connection.upload(file, type: type, field: name)
      }
    }
    return RecordOperation(
      operationType: exists ? .forceReplace : .create,
      record: RecordDictionary(
        recordName: input.recordName,
        recordType: type,
        fields: values,
        parent: input.parent,
        createShortGUID: input.createsShortGUID
      )
    )
  }

  /// Sends operations; those that refer to records that do not exist yet wait.
  private mutating func send(_ operations: [RecordOperation], _ zone: ZoneID) async throws {
    guard !operations.isEmpty else { return }
    let reply: RecordsResponse = try await connection.patiently(
      .modifyRecords,
      ModifyRecordsRequest(operations: operations, zoneID: zone, atomic: false)
    )
    for (operation, item) in zip(operations, reply.records) {
      switch item {
      case .success:
        if operation.operationType == .create { result.created += 1 } else { result.replaced += 1 }
      case .failure(let error):
        switch error.serverErrorCode {
        case .validatingReferenceError, .throttled, .tryAgainLater:
          waiting.append(Waiting(zone: zone, operation: operation, error: error))
        default: fail(operation, zone, error)
        }
      }
    }
  }

  /// Sends what waits until nothing more is saved.
  private mutating func saveWaiting() async throws {
    while !waiting.isEmpty {
      let before = waiting
      waiting = []
      var rest = before[...]
      while let zone = rest.first?.zone {
        let part = rest.prefix(Self.recordsInBatch).prefix { $0.zone == zone }
        rest = rest.dropFirst(part.count)
        try await send(part.map(\.operation), zone)
      }
      guard waiting.count == before.count else { continue }
      for entry in waiting { fail(entry.operation, entry.zone, entry.error) }
      waiting = []
    }
  }

  private mutating func fail(
    _ operation: RecordOperation,
    _ zone: ZoneID,
    _ error: ErrorDictionary
  ) {
    result.failures.append(
      Failure(
        recordName: operation.record.recordName ?? "",
        zoneName: zone.zoneName,
        code: error.serverErrorCode.rawValue,
        reason: error.reason ?? ""
      )
    )
  }
}
