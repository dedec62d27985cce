import CloudKitWebServices
import Foundation

/// Decides a batch of record operations; a pure function, so that it can be repeated.
struct ModifyPlanner {
  /// A record after the batch.
  struct Draft {
    var stored: StoredRecord
    var fields: [String: FieldValue]
    /// The kinds of values among the fields.
    var contents: RecordContents
    var sharing: RecordSharing?
  }

  /// A failed operation, with the conflicting record.
  struct Failure {
    var error: ErrorDictionary
    var current: StoredRecord?
  }

  let input: ModifyInput
  var failures: [Int: Failure] = [:]

  /// The fields of stored records, decoded once for all attempts.
  private var decoded: [RecordKey: [String: FieldValue]] = [:]
  /// The files whose receipts the operations have.
  var receivedFiles: Set<String> = []
  let work = Work()

  /// The attempts and the references examined so far, which the limits bound.
  final class Work {
    var attempts = 0
    var examinedReferences = 0
  }

  // The state of one attempt.
  var schema: SchemaDraft
  var saved: [RecordKey: Draft] = [:]
  var savedBy: [RecordKey: Int] = [:]
  var deleted: [RecordKey: StoredRecord] = [:]
  var deletedBy: [RecordKey: Int] = [:]
  var placing = Placing()
  /// Roots whose share begins or ends although they are not saved.
  var touchedRoots: [RecordKey: RecordSharing] = [:]
  var madeGUIDs: [RecordKey: String] = [:]

  init(_ input: ModifyInput) {
    self.input = input
    schema = input.schema
  }

  /// Repeats attempts without the failed operations until the rest is consistent.
  static func plan(_ input: ModifyInput) throws -> ModifyPlan {
    var planner = ModifyPlanner(input)
    for (index, operation) in input.operations.enumerated() {
      if let refusal = operation.refusal { planner.failures[index] = Failure(error: refusal) }
    }
    while true {
      let known = planner.failures.count
      try planner.attempt()
      if planner.failures.count == known || input.isAtomic { break }
      if planner.work.attempts == input.limits.planningAttempts { planner.failRest() }
    }
    if input.isAtomic, !planner.failures.isEmpty { return planner.failedAtomically() }
    return try planner.finished()
  }

  /// Fails all other operations of a batch whose failures follow from each other too often.
  private mutating func failRest() {
    for index in input.operations.indices where failures[index] == nil {
      failures[index] = Failure(
        error: ErrorDictionary(
          .badRequest,
          "too many operations of the batch depend on each other; send fewer of them",
          extension: ErrorExtension(code: .limitExceeded)
        )
      )
    }
  }

  private mutating func attempt() throws {
    work.attempts += 1
    schema = input.schema
    saved = Dictionary(minimumCapacity: input.operations.count)
    savedBy = Dictionary(minimumCapacity: input.operations.count)
    deleted = [:]
    deletedBy = [:]
    placing = Placing()
    touchedRoots = [:]
    madeGUIDs = [:]
    // Shares last: a root may be in the same batch, in any order. Members of shares in a record of
    // another type are ignored.
    let isShare = { [input] (index: Int) -> Bool in
      let (record, key) = (input.operations[index].record, input.operations[index].key)
      let type = record.sharedRecordType ?? key.flatMap { input.existing[$0]?.type }
      return record.sharing != nil && type == ShareDictionary.recordType
    }
    let order =
      input.operations.indices.filter { !isShare($0) }
      + input.operations.indices.filter(isShare)
    for index in order where failures[index] == nil {
      do {
        try apply(index)
      } catch let failure as FailureError {
        failures[index] = failure.failure
      } catch let error as ErrorDictionary {
        failures[index] = Failure(error: error)
      }
    }
    let known = failures.count
    checkTargets()
    // The next attempt omits them, and may delete the records to which they refer.
    if failures.count > known, !input.isAtomic { return }
    checkHolders()
    try deleteReferrers()
    checkTargetsOfCascade()
    try placeRecords()
  }

  /// The existing record after the operations so far.
  func current(_ key: RecordKey) -> StoredRecord? {
    if let draft = saved[key] { return draft.stored }
    guard deleted[key] == nil, let stored = input.existing[key], !stored.isDeleted else {
      return nil
    }
    return stored
  }

  // MARK: Operations

  private mutating func apply(_ index: Int) throws {
    let operation = input.operations[index]
    guard let key = operation.key else { return }
    if operation.type.isDelete {
      try delete(key, operation, index)
    } else {
      try save(key, operation, index)
    }
  }

  private mutating func delete(_ key: RecordKey, _ operation: KeyedOperation, _ index: Int) throws {
    let found = visible(key)
    if operation.type == .delete, operation.record.recordChangeTag == nil {
      throw ErrorDictionary(.badRequest, "missing required field 'recordChangeTag'")
    }
    guard let found else {
      // Forced deletions are idempotent: the record is already deleted.
      if operation.type == .forceDelete { return }
      throw ErrorDictionary(.notFound, "Record not found")
    }
    try checkAccess(.write, found, key)
    // The user could not create it again: it is deleted with the account.
    if found.type == RecordTypeSchema.users.name, !input.isErasing {
      throw ErrorDictionary(.accessDenied, "DELETE operation not permitted on type Users")
    }
    if operation.type == .delete, found.tag != operation.record.recordChangeTag {
      throw FailureError(failure: conflict(found))
    }
    if found.isShare, input.sharing.access.isShared {
      try leave(found, index)
      return
    }
    try checkDeletion(of: found)
    deleted[key] = found
    deletedBy[key] = index
  }

  private mutating func save(_ key: RecordKey, _ operation: KeyedOperation, _ index: Int) throws {
    // Treats invisible records as missing, so that no earlier error reveals them.
    let found = visible(key)
    // A record that was deleted since the erasing read it is not made again.
    if input.isErasing, found == nil { throw ErrorDictionary(.notFound, "Record not found") }
    let type = try checkedType(operation, key, found)
    let isShare = type == ShareDictionary.recordType
    var grown = schema
    let admitted =
      isShare
      ? try admitShareFields(operation.record.fields ?? [:], &grown)
      : try grown.admit(operation.record.fields ?? [:], type: type)
    // A caller who may create records receives that the record exists, even if another user owns
    // it.
    if let found, operation.type != .create {
      try checkAccess(.write, found, key)
    } else {
      try checkCreation(of: type)
    }
    try checkTag(operation, found)
    // Only an administrator sets roles; users may write the rest of their own record.
    if type == RecordTypeSchema.users.name, admitted[RecordTypeSchema.rolesField] != nil {
      throw ErrorDictionary(.accessDenied, "WRITE operation not permitted on 'roles'")
    }
    var fields = try mergedFields(operation, admitted, found, type, in: grown.schema)
    let survey = FieldSurvey(fields)
    if survey.contents.contains(.references) {
      try keepReferencesInside(operation.zone, &fields)
    }
    try checkSize(survey.size)
    let parent = try resultingParent(operation, key, found)
    let sharing =
      isShare
      ? try share(operation, key, found)
      : try rootSharing(operation, key, found, movesTo: parent)
    schema = grown
    let stamp = input.stamping.stamp
    let record = StoredRecord(
      key: key,
      type: type,
      tag: "",
      change: .zero,
      created: found?.created ?? stamp,
      modified: stamp,
      parent: parent,
      fields: Data(),
      contents: [],
      isDeleted: false
    )
    saved[key] = Draft(
      stored: record,
      fields: fields,
      contents: survey.contents,
      sharing: sharing
    )
    savedBy[key] = index
  }

  /// The type that a save names, or else that of the record.
  private func checkedType(
    _ operation: KeyedOperation,
    _ key: RecordKey,
    _ found: StoredRecord?
  ) throws -> String {
    guard let type = operation.record.sharedRecordType ?? found?.type else {
      guard operation.type == .update || operation.type == .replace else {
        throw ErrorDictionary(.badRequest, "missing required field 'recordType'")
      }
      throw ErrorDictionary(.notFound, "Record not found")
    }
    if let found, operation.type != .create, found.type != type {
      // Only callers who may write the record receive its type.
      try checkAccess(.write, found, key)
      throw ErrorDictionary(
        .badRequest,
        "record '\(key.name)' has the type \(found.type), not \(type)",
        extension: ErrorExtension(code: .schemaMismatch)
      )
    }
    return type
  }

  /// The record's fields after a save: those of the request, and the previous ones that an update keeps.
  private mutating func mergedFields(
    _ operation: KeyedOperation,
    _ admitted: [String: FieldValue],
    _ found: StoredRecord?,
    _ type: String,
    in schema: DatabaseSchema
  ) throws -> [String: FieldValue] {
    let previous = try found.map { try saved[$0.key]?.fields ?? decodedFields(of: $0) } ?? [:]
    let keepsOtherFields = operation.type == .update || operation.type == .forceUpdate
    var fields = keepsOtherFields ? previous : [:]
    if type == RecordTypeSchema.users.name {
      fields[RecordTypeSchema.rolesField] = previous[RecordTypeSchema.rolesField]
    }
    if input.isErasing {
      let declared = schema[recordType: type]
      fields = fields.filter { declared?[field: $0.key] != nil }
    }
    if fields.isEmpty, admitted.values.allSatisfy(\.content.isStoredAsItIs) { return admitted }
    for (name, value) in admitted {
      fields[name] =
        value.content == .null ? nil : try admitAssets(value, previous: previous[name])
    }
    return fields
  }

  /// The record's parent after a save.
  private func resultingParent(
    _ operation: KeyedOperation,
    _ key: RecordKey,
    _ found: StoredRecord?
  ) throws -> String? {
    // The parent is no field: a replacement without it keeps it, and the record stays in its share.
    var parent = found?.parent
    if let asked = operation.record.parent {
      parent = try checkedParent(asked, operation.zone, key)
    }
    return operation.record.removesParent ? nil : parent
  }

  /// Decodes a stored record's fields, or returns those of an earlier attempt.
  private mutating func decodedFields(of stored: StoredRecord) throws -> [String: FieldValue] {
    if let known = decoded[stored.key] { return known }
    let fields = try stored.decodedFields()
    // An atomic batch has one attempt.
    if !input.isAtomic { decoded[stored.key] = fields }
    return fields
  }

  // MARK: Checks

  private func checkTag(_ operation: KeyedOperation, _ found: StoredRecord?) throws {
    switch operation.type {
    case .create:
      if let found {
        throw FailureError(
          failure: Failure(
            error: ErrorDictionary(
              .exists,
              "record to insert already exists",
              extension: ErrorExtension(code: .recordExists)
            ),
            current: found
          )
        )
      }
    case .update, .replace:
      guard let tag = operation.record.recordChangeTag else {
        throw ErrorDictionary(.badRequest, "missing required field 'recordChangeTag'")
      }
      guard let found else { throw ErrorDictionary(.notFound, "Record not found") }
      guard found.tag == tag else { throw FailureError(failure: conflict(found)) }
    case .forceUpdate, .forceReplace, .delete, .forceDelete: break
    }
  }

  func conflict(_ found: StoredRecord) -> Failure {
    Failure(
      error: ErrorDictionary(
        .conflict,
        "record to update already exists with a different change tag",
        extension: ErrorExtension(code: .serverRecordChanged)
      ),
      current: found
    )
  }

  private func access() -> RecordAccess {
    RecordAccess(
      scope: input.isErasing ? .private : input.scope,
      schema: schema.schema,
      user: input.stamping.user,
      roles: input.roles
    )
  }

  /// Whether the caller may read a record: names and contents of unreadable ones are in no reply.
  func mayRead(_ record: StoredRecord) -> Bool {
    access().allows(.read, type: record.type, creator: .of(record))
  }

  private func checkAccess(
    _ permission: SchemaGrant.Permission,
    _ found: StoredRecord,
    _ key: RecordKey
  ) throws {
    try checkShareAccess(found, key)
    guard
      access().allows(permission, type: found.type, creator: .of(found))
    else {
      throw ErrorDictionary(
        .accessDenied,
        "\(permission.rawValue) operation not permitted on '\(key.name)'"
      )
    }
  }

  private func checkCreation(of type: String) throws {
    guard type != RecordTypeSchema.users.name,
      access().allows(.create, type: type, creator: .caller)
    else {
      throw ErrorDictionary(.accessDenied, "CREATE operation not permitted on type \(type)")
    }
  }

  private mutating func admitAssets(_ value: FieldValue, previous: FieldValue?) throws -> FieldValue
  {
    func admit(_ asset: AssetValue) throws -> AssetValue {
      let admitted = try input.admitAsset(asset, previous)
      if asset.receipt != nil, let file = admitted.fileName { receivedFiles.insert(file) }
      return admitted
    }
    var value = value
    switch value.content {
    case .asset(let asset): value.content = .asset(try admit(asset))
    case .assetList(let assets): value.content = .assetList(try assets.map { try admit($0) })
    default: break
    }
    return value
  }

  /// Checks that references lead into the record's own zone, and removes its name from them.
  private func keepReferencesInside(
    _ zone: ZoneID,
    _ fields: inout [String: FieldValue]
  ) throws {
    try checkReferencesAreInside(in: zone, fields)
    // Each reader names the zone differently, and it is always the record's own.
    for (name, value) in fields where value.content.references.contains(where: \.isPlaced) {
      fields[name]?.content = value.content.placingReferences(in: nil)
    }
  }

  private func checkReferencesAreInside(in zone: ZoneID, _ fields: [String: FieldValue]) throws {
    for (name, value) in fields {
      for reference in value.content.references {
        guard reference.action != nil else {
          throw ErrorDictionary(.badRequest, "the reference in '\(name)' has no action")
        }
        if let target = reference.zoneID, !isSame(target, zone) {
          throw ErrorDictionary(
            .badRequest,
            "the reference in '\(name)' leads to another zone, \(target.zoneName)"
          )
        }
      }
    }
  }

  /// Whether a zone in a reference is the record's own.
  private func isSame(_ target: ZoneID, _ zone: ZoneID) -> Bool {
    guard target.zoneName == zone.zoneName else { return false }
    guard let named = target.ownerRecordName, !ZoneID.isCaller(named) else { return true }
    let owner = zone.ownerRecordName.flatMap { ZoneID.isCaller($0) ? nil : $0 }
    return input.scope == .public || named == owner ?? input.stamping.user
  }

  private func checkSize(_ size: Int) throws {
    guard size <= input.limits.recordSize else {
      throw ErrorDictionary(
        .badRequest,
        "record size of \(size) bytes is over the limit of \(input.limits.recordSize) bytes",
        extension: ErrorExtension(code: .limitExceeded)
      )
    }
  }
}

extension FieldContent {
  /// Whether the value is stored unchanged: no removal, and no file whose upload must be verified.
  fileprivate var isStoredAsItIs: Bool {
    switch self {
    case .null, .asset, .assetList: false
    default: true
    }
  }
}

extension ReferenceValue {
  fileprivate var isPlaced: Bool { zoneID != nil }
}

/// An error with the conflicting record.
struct FailureError: Error {
  var failure: ModifyPlanner.Failure
}
