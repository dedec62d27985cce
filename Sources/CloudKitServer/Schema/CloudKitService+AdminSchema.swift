import CloudKitWebServices
import Foundation

/// Administration calls for schemas.
extension CloudKitService {
  private struct Place: Decodable {
    var container: String
    var environment: ContainerEnvironment?
  }

  private struct NewSchema: Decodable {
    var container: String
    var environment: ContainerEnvironment?
    var schema: String
  }

  private struct Validation: Encodable {
    var changes: [SchemaDifference.Change]
    /// The number of affected records by record type.
    var affectedRecords: [String: Int64]
  }

  private struct Comparison: Decodable {
    var container: String
    var from: ContainerEnvironment?
    var to: ContainerEnvironment?
    /// Instead of `to`: the text of a schema.
    var schema: String?
  }

  private struct Promotion: Decodable {
    var container: String
    var isDryRun: Bool?
  }

  private struct ChangedIndex: Decodable {
    var container: String
    var recordType: String
    var field: String
    var index: FieldIndex
    var isKept: Bool
  }

  private struct ChangedRoles: Decodable {
    var container: String
    var environment: ContainerEnvironment?
    var userRecordName: String
    var roles: [String]
  }

  func administerSchema(
    _ verb: AdminEndpoint.Schema,
    _ call: AdminCall
  ) async throws -> AdminReply {
    do {
      return try await answerSchema(verb, call)
    } catch let error as SchemaSyntaxError {
      throw ErrorDictionary(.badRequest, error.description)
    } catch let error as DatabaseSchema.Refusal {
      throw ErrorDictionary(.badRequest, error.description)
    }
  }

  private func answerSchema(
    _ verb: AdminEndpoint.Schema,
    _ call: AdminCall
  ) async throws -> AdminReply {
    switch verb {
    case .export:
      let place: Place = try call.read()
      let text = try schemas.exportSchema(
        container: place.container,
        environment: place.environment ?? .development
      )
      return try call.reply(["schema": text], .unaudited(.reads))
    case .validate: return try await validateSchema(call)
    case .importSchema:
      let new: NewSchema = try call.read()
      let difference = try await schema(new, onlyValidates: false)
      let trace = auditLog.record("schema.import", by: call, about: new.container)
      return try call.reply(["changes": difference.changes], trace)
    case .diff:
      let wanted: Comparison = try call.read()
      return try call.reply(["changes": try difference(wanted).changes], .unaudited(.reads))
    case .promote: return try await promoteSchema(call)
    case .resetDevelopment:
      let place: Place = try call.read()
      try await schemas.resetDevelopment(container: place.container)
      return call.done(
        auditLog.record("schema.reset-development", by: call, about: place.container)
      )
    case .setIndex: return try await setIndex(call)
    case .setRoles: return try await setRoles(call)
    }
  }

  private func schema(_ new: NewSchema, onlyValidates: Bool) async throws -> SchemaDifference {
    try await schemas.importSchema(
      new.schema,
      container: new.container,
      environment: new.environment ?? .development,
      onlyValidates: onlyValidates
    )
  }

  private func validateSchema(_ call: AdminCall) async throws -> AdminReply {
    let new: NewSchema = try call.read()
    let difference = try await schema(new, onlyValidates: true)
    let affected = try schemas.affectedRecords(of: difference, container: new.container)
    return try call.reply(
      Validation(changes: difference.changes, affectedRecords: affected),
      .unaudited(.reads)
    )
  }

  private func promoteSchema(_ call: AdminCall) async throws -> AdminReply {
    let promotion: Promotion = try call.read()
    let isDryRun = promotion.isDryRun ?? false
    let difference = try await schemas.promoteSchema(
      container: promotion.container,
      isDryRun: isDryRun
    )
    let trace =
      isDryRun
      ? .unaudited(.reads)
      : auditLog.record("schema.promote", by: call, about: promotion.container)
    return try call.reply(["changes": difference.changes], trace)
  }

  private func setIndex(_ call: AdminCall) async throws -> AdminReply {
    let change: ChangedIndex = try call.read()
    let difference = try await schemas.setIndex(
      change.index,
      isKept: change.isKept,
      recordType: change.recordType,
      field: change.field,
      container: change.container
    )
    let trace = auditLog.record(
      "schema.set-index",
      by: call,
      about: change.container,
      detail: change.recordType
    )
    return try call.reply(["changes": difference.changes], trace)
  }

  private func setRoles(_ call: AdminCall) async throws -> AdminReply {
    let change: ChangedRoles = try call.read()
    try await schemas.setRoles(
      Set(change.roles),
      ofUser: change.userRecordName,
      container: change.container,
      environment: change.environment ?? .development
    )
    let trace = auditLog.record(
      "schema.set-roles",
      by: call,
      about: change.userRecordName,
      detail: change.container
    )
    return call.done(trace)
  }

  private func difference(_ wanted: Comparison) throws -> SchemaDifference {
    guard let text = wanted.schema else {
      return try schemas.schemaDifference(
        container: wanted.container,
        from: wanted.from ?? .production,
        to: wanted.to ?? .development
      )
    }
    return SchemaDifference(
      from: try schemas.schema(
        container: wanted.container,
        environment: wanted.from ?? .development
      ).completed,
      to: try DatabaseSchema(ckdb: text).completed
    )
  }
}
