import CloudKitMirroring
import OpenCoreData
import Testing

/// One rule of an import: what is known before it, and what it decides.
struct ImportRule: CustomTestStringConvertible, Sendable {
  var testDescription: String
  var known: RecordMetadata
  var base: [String: String]?
  var server: [String: String]
  var stamps = RecordStamps(created: 1, modified: 5)
  var local: [String: String]
  var missingFiles: Set<String> = []
  var trusted: [[String: String]] = []
  var isFromEarlierOpening = false
  var isOtherServer = false
  var unreadFiles: Set<String> = []
  /// The values of an update whose reply was lost.
  var sent: [String: String]?
  // What is expected.
  var fromServer: Set<String> = []
  var stillPending: Set<String> = []
  var conflicting: Set<String> = []
  var resent: Set<String> = []
  var recoveries: [ImportRecovery] = []
  /// Whether the record counts as one that a restored server has lost.
  var isOfLostCopy = false

  init(
    _ description: String,
    _ known: Known,
    base: [String: String]?,
    server: [String: String],
    local: [String: String],
    _ change: (inout ImportRule) -> Void = { _ in }
  ) {
    testDescription = description
    self.known = known.metadata
    self.base = base
    self.server = server
    self.local = local
    change(&self)
  }

  /// What this store knew of the record before.
  enum Known {
    case agreed
    case edited(Set<String>)
    case neverSent(edited: Set<String>)
    /// The zone was deleted since, or the object was restored after its deletion.
    case forgotten(edited: Set<String>)
    case lostCopy(edited: Set<String>)
    case sent(Set<String>)

    var metadata: RecordMetadata {
      var record = RecordMetadata(name: "R", recordType: "CD_Post", entityName: "Post", key: 1)
      record.tag = "before"
      record.stamps = RecordStamps(created: 1, modified: 3)
      func edit(_ properties: Set<String>) {
        record.properties = properties
        record.pending = properties.isEmpty ? .nothing : .save
      }
      switch self {
      case .agreed: break
      case .edited(let properties): edit(properties)
      case .neverSent(let properties):
        record.tag = nil
        record.stamps = RecordStamps()
        edit(properties)
        record.pending = .save
      case .forgotten(let properties):
        record.tag = nil
        edit(properties)
      case .lostCopy(let properties):
        record.stamps.modified = nil
        edit(properties)
      case .sent(let properties):
        record.sentChange = .inBatch(7, .save, properties: properties)
      }
      return record
    }
  }

  static func bag(_ values: [String: String]) -> FieldBag {
    FieldBag(
      Dictionary(uniqueKeysWithValues: values.map { ("CD_" + $0.key, .string($0.value)) })
    )
  }
}

@Suite("What an import decides about one object")
struct ImportDecisionTests {
  private static let mapping = ModelMapping(model: BlogModel.make(), configuration: nil)

  private func incoming(_ rule: ImportRule, _ entity: EntityMapping) -> IncomingRecord {
    let server = ImportRule.bag(rule.server)
    var known = rule.known
    known.base = rule.base.map(ImportRule.bag)
    var repeated: RepeatedUpdate?
    if let sent = rule.sent, let base = known.base {
      let update = RepeatedUpdate(
        CloudOperation(.update, name: "R", recordType: "CD_Post", set: ImportRule.bag(sent)),
        properties: known.sent,
        since: base,
        server: server,
        entity
      )
      if !update.taken.isEmpty { known.base = update.sent }
      repeated = update
    }
    var incoming = IncomingRecord(
      known: known,
      record: CloudRecord(
        name: "R",
        recordType: "CD_Post",
        tag: "after",
        stamps: rule.stamps,
        fields: server
      ),
      newBase: server.asBase,
      entity: entity,
      generation: 2,
      repeated: repeated,
      isOtherServer: rule.isOtherServer
    )
    incoming.unreadFiles = rule.unreadFiles
    return incoming
  }

  private func decide(_ rule: ImportRule) throws -> ImportDecision {
    let entity = try #require(Self.mapping.entity(named: "Post"))
    var local = LocalObject(ImportRule.bag(rule.local))
    local.missingFiles = rule.missingFiles
    local.trusted = rule.trusted.map(ImportRule.bag)
    local.isFromEarlierOpening = rule.isFromEarlierOpening
    return ImportDecision(incoming(rule, entity), local, edits: rule.known.unconfirmed)
  }

  @Test("An import decides about a record as its rule in the table says", arguments: rules)
  func rule(_ rule: ImportRule) throws {
    let decision = try decide(rule)
    #expect(decision.merge.fromServer == rule.fromServer)
    #expect(decision.merge.stillPending == rule.stillPending)
    #expect(decision.merge.conflicting == rule.conflicting)
    #expect(decision.resent == rule.resent)
    #expect(decision.recoveries == rule.recoveries)
    #expect((decision.metadata.stamps.modified == nil) == rule.isOfLostCopy)
    // In each case the server's copy is the agreed one, and what differs from it is sent.
    #expect(decision.metadata.tag == "after")
    #expect(decision.metadata.base == ImportRule.bag(rule.server))
    #expect(decision.metadata.generation == 2)
    #expect(decision.metadata.parked == nil)
    #expect(decision.metadata.unconfirmed.isSuperset(of: rule.stillPending))
    #expect((decision.metadata.pending == .save) == !decision.metadata.properties.isEmpty)
    #expect(decision.beginsSave == (rule.known.pending == .nothing && !rule.resent.isEmpty))
  }

  @Test("Every reason for a replaced value is that of a rule")
  func everyReason() {
    let found = Set(Self.rules.flatMap(\.recoveries).map(\.reason))
    let others: Set<RecoveryReason> = [
      .formerFieldDiffers, .setBackBeforeSending, .restoredEntry,
      .editedElsewhereDeletedHere, .editedHereDeletedElsewhere, .ownerDeletedElsewhere,
      .missingInReading, .linkRemovedElsewhere,
      .linkRemovedHere,
    ]
    #expect(found.union(others) == Set(RecoveryReason.allCases))
    #expect(found.isDisjoint(with: others))
    #expect(Set(RecoveryReason.allCases.map(\.text)).count == RecoveryReason.allCases.count)
  }

  @Test("A link that the server has removed no longer waits for its object")
  func removedLink() throws {
    let entity = try #require(Self.mapping.entity(named: "Attachment"))
    func decision(_ server: [String: String], edited: Set<String> = []) -> ImportDecision {
      var rule = ImportRule("", .edited(edited), base: ["post": "P"], server: server, local: [:])
      rule.known.entityName = "Attachment"
      return ImportDecision(incoming(rule, entity), LocalObject(FieldBag()), edits: edited)
    }
    #expect(decision([:]).removedLinks == ["post"])
    #expect(decision(["post": "P"]).removedLinks == [])
    // Both sides removed it, so nothing is left to send either.
    #expect(decision([:], edited: ["post"]).removedLinks == ["post"])
    #expect(decision([:], edited: ["post"]).metadata.pending == .nothing)
  }

  @Test("The name of a renamed entity stays pending until the server has it")
  func entityName() throws {
    let entity = try #require(Self.mapping.entity(named: "Post"))
    for (name, isPending) in [("Post", false), ("Article", true)] {
      let rule = ImportRule(
        "",
        .edited([MirrorNames.entityName]),
        base: ["title": "a"],
        server: ["title": "a", "entityName": name],
        local: ["title": "a", "entityName": "Post"]
      )
      let decision = try decide(rule)
      #expect(entity.entityName == "Post")
      #expect(decision.metadata.properties == (isPending ? [MirrorNames.entityName] : []))
      #expect(decision.metadata.pending == (isPending ? .save : .nothing))
    }
  }

  @Test(
    "A deletion made here stands, and keeps what the server's copy has that it had not seen",
    arguments: [
      (PendingKind.delete, PendingKind.nothing, ["title": "a"], true),
      (.delete, .nothing, ["title": "s"], false),
      (.delete, .nothing, nil, true),
      (.nothing, .delete, ["title": "a"], true),
      (.nothing, .nothing, ["title": "a"], nil),
      (.save, .nothing, ["title": "a"], nil),
    ] as [(PendingKind, PendingKind, [String: String]?, Bool?)]
  )
  func withoutObject(
    pending: PendingKind,
    sentKind: PendingKind,
    base: [String: String]?,
    overridesEdit: Bool?
  ) throws {
    let entity = try #require(Self.mapping.entity(named: "Post"))
    var rule = ImportRule("", .agreed, base: base, server: ["title": "s"], local: [:])
    rule.known.pending = pending
    rule.known.sentChange = SentChange(sequence: 7, kind: sentKind)
    #expect(
      incoming(rule, entity).withoutObject
        == overridesEdit.map { .keepDeletion(overridesEdit: $0) } ?? .insert
    )
  }
}
