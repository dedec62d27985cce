import CloudKitMirroring
import CloudKitWebServices
import Foundation
import OpenCoreData
import Testing

@Suite struct MappingTests {
  let mapping = ModelMapping(model: BlogModel.make(), configuration: nil)

  private func row(_ entity: EntityMapping, _ values: [String: RowValue]) -> [RowValue] {
    var row = [RowValue](repeating: .null, count: entity.layout.rowWidth)
    for (name, value) in values {
      if let attribute = entity.attribute(name) { row[attribute.index] = value }
      if let toOne = entity.toOne(name) { row[toOne.index] = value }
    }
    return row
  }

  @Test("A subentity's record has the root's type and its own entity name")
  func inheritance() throws {
    let entity = try #require(mapping.entity(named: "ImagePost"))
    let record = RecordSerializer().serialize(
      row(entity, ["title": .string("Moon"), "caption": .string("Full")]),
      entity
    ) { _ in nil }
    #expect(record.recordType == "CD_Post")
    #expect(
      record.fields.values == [
        "CD_entityName": .string("ImagePost"), "CD_title": .string("Moon"),
        "CD_caption": .string("Full"),
      ]
    )
  }

  @Test("A record without an entity name has the entity of its type")
  func entityOfRecord() {
    #expect(
      mapping.entity(recordType: "CD_Post", entityName: "VideoPost")?.entityName == "VideoPost"
    )
    #expect(mapping.entity(recordType: "CD_Tag", entityName: nil)?.entityName == "Tag")
    #expect(mapping.entity(recordType: "CD_Post", entityName: "Podcast") == nil)
    #expect(mapping.entity(recordType: "Users", entityName: nil) == nil)
  }

  @Test("A to-one is the destination's record name, on both sides of a one-to-one")
  func toOnes() throws {
    let attachment = try #require(mapping.entity(named: "Attachment"))
    let target = RowReference(entityNumber: 1, key: 7)
    let record = RecordSerializer().serialize(
      row(attachment, ["post": .reference(target), "imageData": .reference(target)]),
      attachment
    ) { $0 == target ? "P7" : nil }
    #expect(record.fields["CD_post"] == .string("P7"))
    #expect(record.fields["CD_imageData"] == .string("P7"))
    let data = try #require(mapping.entity(named: "ImageData"))
    #expect(data.toOnes.map(\.field) == ["CD_attachment"])
    #expect(attachment.toOne("imageData")?.isDeciding == true)
    #expect(data.toOne("attachment")?.isDeciding == false)
    let post = try #require(mapping.entity(named: "Post"))
    #expect(post.toOnes.isEmpty)
    #expect(post.manyToManys.map(\.name) == ["tags"])
  }

  @Test("Every attribute type is written to its field and read back")
  func everyType() throws {
    let types: [(NSAttributeType, RowValue, MirrorValue)] = [
      (.integer16AttributeType, .integer(-5), .integer(-5)),
      (.integer32AttributeType, .integer(70_000), .integer(70_000)),
      (.integer64AttributeType, .integer(1 << 60), .integer(1 << 60)),
      (.booleanAttributeType, .integer(1), .integer(1)),
      (.doubleAttributeType, .double(0.1), .double(0.1)),
      (.floatAttributeType, .double(0.5), .double(0.5)),
      (
        .decimalAttributeType, .decimal(RowDecimal(Decimal(string: "12.34") ?? 0)), .double(12.34)
      ),
      (.dateAttributeType, .date(0.25), .date(MirrorDate(milliseconds: 978_307_200_250))),
      (
        .UUIDAttributeType,
        .uuid(UUID(uuid: (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16))),
        .string("01020304-0506-0708-090A-0B0C0D0E0F10")
      ),
      (
        .URIAttributeType, .url(try #require(URL(string: "https://example.com/a?b=c"))),
        .string("https://example.com/a?b=c")
      ),
      (.stringAttributeType, .string("Ünï"), .string("Ünï")),
      (.binaryDataAttributeType, .data(Data([1, 2])), .data(Data([1, 2]))),
      (.transformableAttributeType, .data(Data([3])), .data(Data([3]))),
    ]
    for (type, value, expected) in types {
      let model = NSManagedObjectModel()
      model.entities = [BlogModel.entity("Thing", [BlogModel.attribute("a", type)])]
      let entity = try #require(
        ModelMapping(model: model, configuration: nil).entity(named: "Thing")
      )
      let attribute = try #require(entity.attribute("a"))
      #expect(attribute.mirrorValue(value) == expected, "\(type)")
      #expect(attribute.rowValue(expected) == value, "\(type)")
      #expect(attribute.mirrorValue(.null) == nil)
    }
  }

  @Test("A number that does not fit an attribute's width is refused")
  func narrowNumbers() throws {
    let model = NSManagedObjectModel()
    model.entities = [
      BlogModel.entity("Thing", [BlogModel.attribute("a", .integer16AttributeType)])
    ]
    let attribute = try #require(
      ModelMapping(model: model, configuration: nil).entity(named: "Thing")?.attribute("a")
    )
    #expect(attribute.rowValue(.integer(32_767)) == .integer(32_767))
    #expect(attribute.rowValue(.integer(32_768)) == nil)
    #expect(attribute.rowValue(.string("1")) == nil)
  }

  @Test("Transient, derived and ignored attributes are not mirrored")
  func leftOut() throws {
    let derived = NSDerivedAttributeDescription()
    derived.name = "derived"
    derived.attributeType = .stringAttributeType
    let model = NSManagedObjectModel()
    model.entities = [
      BlogModel.entity(
        "Thing",
        [
          BlogModel.attribute("kept", .stringAttributeType) { $0.allowsCloudEncryption = true },
          BlogModel.attribute("transient", .stringAttributeType) { $0.isTransient = true },
          BlogModel.attribute("ignored", .stringAttributeType) {
            $0.userInfo = ["NSCloudKitMirroringDelegateIgnoredPropertyKey": "YES"]
          },
          derived,
        ]
      )
    ]
    let entity = try #require(ModelMapping(model: model, configuration: nil).entity(named: "Thing"))
    #expect(entity.attributes.map(\.name) == ["kept"])
    let record = RecordSerializer().serialize(
      [RowValue](repeating: .string("x"), count: entity.layout.rowWidth),
      entity
    ) { _ in nil }
    #expect(record.encryptedKeys == ["CD_kept"])
  }

  @Test("The largest values move into files first, and the record keeps to its budget")
  func fieldAndAssetField() throws {
    let post = try #require(mapping.entity(named: "Post"))
    let long = String(repeating: "a", count: 400_000)
    let longer = String(repeating: "b", count: 500_000)
    let record = RecordSerializer().serialize(
      row(post, ["title": .string(long), "content": .string(longer)]),
      post
    ) { _ in nil }
    #expect(record.fields["CD_title"] == .string(long))
    #expect(record.fields["CD_content"] == nil)
    #expect(record.fileContents == ["CD_content_ckAsset": Data(longer.utf8)])
    #expect(record.fields.agrees(with: FieldBag(["CD_content": .string(longer)]), on: "content"))
  }

  @Test("The budget counts whole records: one byte below, at and above the limit")
  func budgetEdges() {
    let budget = AssetBudget()
    let limit = AssetBudget.recordLimit
    #expect(limit == 0xAAE60)
    for (length, moved) in [(limit - 101, false), (limit - 100, false), (limit - 99, true)] {
      #expect(budget.movedOut(fixedBytes: 100, lengths: [("a", length)]).isEmpty == !moved)
    }
    #expect(
      budget.movedOut(fixedBytes: 0, lengths: [("a", 350_000), ("b", 350_000), ("c", 1)]) == ["b"]
    )
    let small = AssetBudget(threshold: 100)
    #expect(small.movedOut(fixedBytes: 0, lengths: [("a", 99), ("b", 100)]) == ["b"])
  }

  @Test("Texts count by their bytes, and fields under former names count too")
  func bytesAndFormerFields() throws {
    let post = try #require(mapping.entity(named: "Post"))
    // Three bytes each.
    let text = String(repeating: "\u{8A9E}", count: 300_000)
    let record = RecordSerializer().serialize(row(post, ["title": .string(text)]), post) { _ in
      nil
    }
    #expect(record.fields["CD_title"] == nil)
    #expect(record.fileContents == ["CD_title_ckAsset": Data(text.utf8)])

    let renamed = BlogModel.entity(
      "Post",
      [BlogModel.attribute("title", .stringAttributeType) { $0.renamingIdentifier = "name" }]
    )
    let model = NSManagedObjectModel()
    model.entities = [renamed]
    let entity = try #require(ModelMapping(model: model, configuration: nil).entity(named: "Post"))
    let long = String(repeating: "a", count: 400_000)
    let values = row(entity, ["title": .string(long)])
    let alone = RecordSerializer().serialize(values, entity) { _ in nil }
    #expect(alone.fields["CD_title"] == .string(long))
    let base = FieldBag(["CD_name": .string(long)]).asBase
    let beside = RecordSerializer().serialize(values, entity, base: base) { _ in nil }
    #expect(beside.fields["CD_title"] == nil)
    #expect(beside.fileContents == ["CD_title_ckAsset": Data(long.utf8)])
  }

  @Test("A value that was not edited makes room when another has grown")
  func makesRoom() throws {
    let post = try #require(mapping.entity(named: "Post"))
    let long = String(repeating: "a", count: 400_000)
    let medium = String(repeating: "b", count: 350_000)
    let before = RecordSerializer().serialize(
      row(post, ["title": .string(long), "content": .string("short")]),
      post
    ) { _ in nil }
    let after = RecordSerializer().serialize(
      row(post, ["title": .string(long), "content": .string(medium)]),
      post
    ) { _ in nil }
    let changed = ChangedFields(
      updating: after,
      base: before.fields.asBase,
      properties: ["content"],
      mapping: post
    )
    #expect(changed.removed == ["CD_title"])
    #expect(Set(changed.set.keys) == ["CD_content", "CD_title_ckAsset"])
    #expect(changed.applied(to: before.fields.asBase).hasSameFields(as: after.fields))
  }

  @Test("Only fields that differ from the base are sent")
  func changedFields() throws {
    let post = try #require(mapping.entity(named: "Post"))
    let base = FieldBag([
      "CD_entityName": .string("Post"), "CD_title": .string("a"), "CD_views": .integer(1),
    ])
    let now = RecordSerializer().serialize(
      row(post, ["title": .string("b"), "content": .string("c")]),
      post
    ) { _ in nil }
    let all: Set<String> = ["title", "content", "views", "date"]
    let changed = ChangedFields(updating: now, base: base, properties: all, mapping: post)
    #expect(changed.set == ["CD_title": .string("b"), "CD_content": .string("c")])
    #expect(changed.removed == ["CD_views"])
    let some = ChangedFields(updating: now, base: base, properties: ["views"], mapping: post)
    #expect(some.set.isEmpty)
    #expect(some.removed == ["CD_views"])
  }

  @Test("Fields can be encoded and decoded, and invalid bytes are refused")
  func fieldCoding() throws {
    let print = MirrorFingerprint(of: Data("x".utf8))
    let bag = FieldBag([
      "a": .string("ü"), "b": .integer(-1), "c": .double(.pi),
      "d": .date(MirrorDate(milliseconds: 5)),
      "e": .data(Data()), "f": .asset(MirrorAsset(fingerprint: print, file: "f.fxd")),
      "g": .fingerprint(print),
    ])
    #expect(try FieldBag(encoded: bag.encoded) == bag)
    let date = MirrorValue.date(MirrorDate(secondsSince2001: 0.123_456))
    let copy = try FieldBag(encoded: FieldBag(["d": date, "e": .integer(1)]).encoded)
    guard case .date(let exact) = copy.values["d"] else {
      Issue.record("the date is missing")
      return
    }
    #expect(exact.secondsSince2001 == 0.123_456)
    let negative = Data([1]) + Data(repeating: 0xFF, count: 8)
    #expect(throws: FieldBagError.self) { try FieldBag(encoded: negative) }
    for length in 0..<bag.encoded.count {
      #expect(throws: FieldBagError.self) { try FieldBag(encoded: bag.encoded.prefix(length)) }
    }
    #expect(throws: FieldBagError.self) { try FieldBag(encoded: Data([9]) + bag.encoded) }
  }

  @Test("A batch can be encoded and decoded")
  func batchCoding() throws {
    let batch = CloudBatch(
      device: "D",
      sequence: 3,
      operations: [
        CloudOperation(
          .create,
          name: "N",
          recordType: "CD_A",
          set: FieldBag(["CD_x": .integer(1)]),
          encryptedKeys: ["CD_x"]
        ),
        CloudOperation(.update, name: "M", recordType: "CD_A", tag: "t", removed: ["CD_y"]),
        CloudOperation(.delete, name: "E", recordType: "CDMR", tag: "", isEdge: true),
      ]
    )
    #expect(try CloudBatch(encoded: batch.encoded) == batch)
    // No device, batch 1, and a negative number of operations.
    let numbers = [Int64(0), 1, -1].reduce(into: Data()) { data, number in
      withUnsafeBytes(of: number.littleEndian) { data.append(contentsOf: $0) }
    }
    #expect(throws: FieldBagError.self) { try CloudBatch(encoded: Data([1]) + numbers) }
  }

  @Test("The schema of a model has asset fields, the entity name, edges and move receipts")
  func schema() throws {
    let schema = cloudKitSchema(for: BlogModel.make(), configuration: nil)
    #expect(
      schema.recordTypes.map(\.name) == [
        "CDMR", "CD_Attachment", "CD_ImageData", "CD_Post", "CD_Tag", "Users",
      ]
    )
    let text = schema.ckdb
    for line in [
      "CD_color_ckAsset       ASSET", "CD_moveReceipt         BYTES QUERYABLE SORTABLE",
      "CD_entityNames   STRING QUERYABLE SEARCHABLE SORTABLE",
      "CD_length              DOUBLE QUERYABLE SORTABLE",
      "CD_post                STRING QUERYABLE SEARCHABLE SORTABLE",
    ] {
      #expect(text.contains(line), "\(line)")
    }
    #expect(schema[recordType: "CD_Post"]?[field: "CD_attachments"] == nil)
    #expect(schema[recordType: "CD_Tag"]?[field: "CD_uuid_ckAsset"] == nil)
  }
}
