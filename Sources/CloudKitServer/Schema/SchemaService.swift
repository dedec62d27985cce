import CloudKitWebServices
import Effects
import Foundation

/// The administrator's operations on a container's schemas.
package final class SchemaService: Sendable {
  let storage: any Storage
  let writer: StorageWriter
  private let erasing: SchemaErasures
  let effects: Effects

  init(storage: any Storage, writer: StorageWriter, erasing: SchemaErasures, effects: Effects) {
    self.storage = storage
    self.writer = writer
    self.erasing = erasing
    self.effects = effects
  }

  /// The schema of a container's environment; an empty one has the type `Users`.
  package func schema(
    container: String,
    environment: ContainerEnvironment
  ) throws -> DatabaseSchema {
    try storage.read { try $0.schema(container: container, environment: environment) }?.schema
      ?? DatabaseSchema()
  }

  /// The text of an environment's schema.
  package func exportSchema(
    container: String,
    environment: ContainerEnvironment
  ) throws -> String {
    try schema(container: container, environment: environment).completed.ckdb
  }

  /// Replaces the development schema by a file's, or only validates that it could be replaced.
  ///
  /// Returns the differences. Throws `SchemaSyntaxError` or `DatabaseSchema.Refusal` without
  /// replacing anything.
  @discardableResult
  package func importSchema(
    _ text: String,
    container: String,
    environment: ContainerEnvironment = .development,
    onlyValidates: Bool = false
  ) async throws -> SchemaDifference {
    let file = try DatabaseSchema(ckdb: text)
    guard environment == .development else {
      throw DatabaseSchema.Refusal(
        reasons: [
          "Invalid scope: a schema is imported into development, and promoted to production by "
            + "`watershed schema promote`"
        ]
      )
    }
    let difference = try await changeSchema(
      of: container,
      .development,
      isDryRun: onlyValidates
    ) { development, production in
      try development.importing(file, production: production)
    }
    if !onlyValidates { try await erasing.finish(container: container) }
    return difference
  }

  /// The number of development records that a difference would affect, by type: all of a removed
  /// type, and those that may have a value in a removed field.
  func affectedRecords(of difference: SchemaDifference, container: String) throws -> [String: Int64]
  {
    guard let erasing = SchemaErasing(difference, isReset: false) else { return [:] }
    return try storage.read { snapshot in
      let partitions = try snapshot.partitions(container: container, environment: .development)
      var counts: [String: Int64] = [:]
      for type in erasing.types.union(erasing.strippedTypes) {
        counts[type] = try partitions.values.reduce(0) {
          $0 + (try snapshot.recordCount(in: $1, type: type))
        }
      }
      return counts
    }
  }

  /// The differences between two schemas of a container.
  package func schemaDifference(
    container: String,
    from old: ContainerEnvironment = .production,
    to new: ContainerEnvironment = .development
  ) throws -> SchemaDifference {
    SchemaDifference(
      from: try schema(container: container, environment: old).completed,
      to: try schema(container: container, environment: new).completed
    )
  }

  /// Adds development's additions to the production schema; returns the differences.
  @discardableResult
  package func promoteSchema(
    container: String,
    isDryRun: Bool = false
  ) async throws -> SchemaDifference {
    try await changeSchema(of: container, .production, isDryRun: isDryRun) {
      development,
      production in
      try production.promoting(development)
    }
  }

  /// Adds an index to a field of the development schema, or removes one.
  package func setIndex(
    _ index: FieldIndex,
    isKept: Bool,
    recordType: String,
    field: String,
    container: String
  ) async throws -> SchemaDifference {
    try await changeSchema(of: container, .development, isDryRun: false) { development, _ in
      var next = development
      guard let type = next.recordTypes.firstIndex(where: { $0.name == recordType }) else {
        throw DatabaseSchema.Refusal(reasons: ["Did not find record type: \(recordType)"])
      }
      let name = QueryField.systemName(field, in: next.recordTypes[type])
      guard let place = next.recordTypes[type].fields.firstIndex(where: { $0.name == name }) else {
        throw DatabaseSchema.Refusal(reasons: ["Unknown field '\(field)'"])
      }
      if isKept {
        next.recordTypes[type].fields[place].indexes.insert(index)
      } else {
        next.recordTypes[type].fields[place].indexes.remove(index)
      }
      guard next.problems.isEmpty else { throw DatabaseSchema.Refusal(reasons: next.problems) }
      return next
    }
  }

  func changeSchema(
    of container: String,
    _ environment: ContainerEnvironment,
    isDryRun: Bool,
    isReset: Bool = false,
    _ change:
      @escaping @Sendable (_ development: DatabaseSchema, _ production: DatabaseSchema) throws
      -> DatabaseSchema
  ) async throws -> SchemaDifference {
    // A field that is added again must not show values that are still to be erased.
    if environment == .development, !isDryRun { try await erasing.finish(container: container) }
    return try await writer.write { [storage, erasing, effects] in
      let (development, production) = try storage.read {
        (
          try $0.schema(container: container, environment: .development),
          try $0.schema(container: container, environment: .production)
        )
      }
      let next = try change(
        (development?.schema ?? DatabaseSchema()).completed,
        (production?.schema ?? DatabaseSchema()).completed
      )
      let stored = environment == .development ? development : production
      let old = stored?.schema ?? DatabaseSchema()
      let difference = SchemaDifference(from: old.completed, to: next)
      if isDryRun || (old == next && !isReset) { return (nil, difference) }
      var batch = WriteBatch()
      batch.container = container
      batch.replaceSchema(
        stored,
        by: next,
        container: container,
        environment: environment,
        now: effects.now.wireMilliseconds
      )
      if environment == .development {
        try erasing.note(
          SchemaErasing(difference, isReset: isReset),
          container: container,
          in: &batch
        )
      }
      return (batch, difference)
    }
  }

  /// Replaces the development schema by the production schema and deletes all development data.
  ///
  /// Zones are marked as deleted, so that clients are notified; users keep an empty record. The
  /// remaining work is stored in the schema's transaction, and is continued after a restart.
  package func resetDevelopment(container: String) async throws {
    _ = try await changeSchema(of: container, .development, isDryRun: false, isReset: true) { $1 }
    try await erasing.finish(container: container)
  }

  // MARK: Roles

  /// Sets the custom roles that a user holds in the public database of an environment.
  package func setRoles(
    _ roles: Set<String>,
    ofUser recordName: String,
    container: String,
    environment: ContainerEnvironment
  ) async throws {
    let id = try storage.partition(
      PartitionKey(container: container, environment: environment, scope: .public, owner: "")
    )
    let key = RecordKey(zone: .defaultZone, name: recordName)
    let (now, bits) = (effects.now.wireMilliseconds, effects.randomness.next())
    try await writer.write { [storage] in
      let (schema, found) = try storage.read {
        (
          try $0.schema(container: container, environment: environment)?.schema
            ?? DatabaseSchema(),
          try $0.records(in: id, keys: [key])[key]
        )
      }
      let unknown = roles.subtracting(schema.roles).sorted()
      guard unknown.isEmpty else {
        throw AdministrationError(
          description: "The schema has no role '\(unknown.joined(separator: "', '"))'."
        )
      }
      guard let old = found, !old.isDeleted, old.type == RecordTypeSchema.users.name else {
        throw AdministrationError(description: "There is no user '\(recordName)'.")
      }
      var record = old
      var fields = try record.decodedFields()
      let numbers = roles.compactMap { schema.roleNumbers[$0] }.sorted()
      fields[RecordTypeSchema.rolesField] = FieldValue(.int64List(numbers))
      var json = JSONWriter()
      json.fields(fields)
      var batch = WriteBatch(partition: id)
      batch.expectedTags[key] = .some(record.tag)
      record.fields = json.finished()
      record.modified.timestamp = now
      record.tag = String(bits, radix: 36)
      batch.records = [record]
      try storage.read { try $0.reindex(old, as: record, in: id, &batch) }
      return (batch, ())
    }
  }
}

extension StoredSchema {
  /// The version of the next schema.
  ///
  /// The first one is the time, in milliseconds since 1970: a container
  /// with the name of a deleted one never gets a version that a cache has of that one.
  static func version(after stored: StoredSchema?, now: Int64) -> Int64 {
    stored.map { $0.version + 1 } ?? now
  }
}

extension WriteBatch {
  /// Replaces a schema, if it is still the version that was read.
  mutating func replaceSchema(
    _ stored: StoredSchema?,
    by next: DatabaseSchema,
    container: String,
    environment: ContainerEnvironment,
    now: Int64
  ) {
    expectedSchemaVersion = ExpectedSchema(
      container: container,
      environment: environment,
      version: stored?.version ?? 0
    )
    schema = SchemaWrite(
      container: container,
      environment: environment,
      stored: StoredSchema(schema: next, version: StoredSchema.version(after: stored, now: now))
    )
  }
}
