import CloudKitMirroring
import Foundation
import OpenCoreData
import Testing

@Suite("Present and former fields of a renamed attribute")
struct FormerFieldTests {
  private static func entity() throws -> EntityMapping {
    let headline = BlogModel.attribute("headline", .stringAttributeType) {
      $0.renamingIdentifier = "title"
    }
    let model = NSManagedObjectModel()
    model.entities = [BlogModel.entity("Post", [headline])]
    return try #require(ModelMapping(model: model, configuration: nil).entity(named: "Post"))
  }

  private static func file(_ text: String) -> MirrorValue {
    .asset(
      MirrorAsset(
        fingerprint: MirrorFingerprint(size: Int64(text.utf8.count), digest: Data(text.utf8)),
        file: ""
      )
    )
  }

  private func reading(
    _ present: [String: MirrorValue],
    _ former: [String: MirrorValue]
  ) throws
    -> EntityMapping.Reading
  {
    let base = FieldBag(former)
    return try Self.entity().reading(
      FieldBag(former.merging(present) { $1 }),
      since: base
    )
  }

  @Test("A value that a former version moved into a file is newer than the present field")
  func formerFile() throws {
    let former = ["CD_title_ckAsset": Self.file("new")]
    let found = try reading(["CD_headline": .string("old")], former)
    #expect(found.doubtful == ["headline"])
    #expect(found.fields.content(of: "headline") == Self.file("new"))
    #expect(found.unreadFiles == [])
  }

  @Test("A file under the present name that was never read is taken, and reported")
  func presentFile() throws {
    for former in [
      ["CD_title": MirrorValue.string("other")], ["CD_title_ckAsset": Self.file("other")],
    ] {
      let found = try reading(["CD_headline_ckAsset": Self.file("file")], former)
      #expect(found.unreadFiles == ["headline"])
      #expect(found.doubtful == [])
      #expect(found.fields.content(of: "headline") == Self.file("file"))
    }
    let same = ["CD_title_ckAsset": Self.file("file")]
    #expect(try reading(["CD_headline_ckAsset": Self.file("file")], same).unreadFiles == [])
  }
}
