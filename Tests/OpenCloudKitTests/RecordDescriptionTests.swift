import Foundation
import Testing

import OpenCloudKit

@Suite("Records in print")
struct RecordDescriptionTests {
  private let zoneID = CKRecordZone.ID(zoneName: "com.apple.coredata.cloudkit.zone")

  @Test("A record prints in CloudKit's form")
  func form() {
    let record = CKRecord(
      recordType: "CD_Post",
      recordID: CKRecord.ID(recordName: "CD_Post_UUID", zoneID: zoneID)
    )
    record["CD_entityName"] = "Post"
    record["CD_content"] = "An example core data string"
    #expect(
      record.formatted(address: false) == """
        <CKRecord: 0x0; recordID=CD_Post_UUID:(com.apple.coredata.cloudkit.zone:\
        __defaultOwner__), values={
        "CD_content" = "An example core data string";
        "CD_entityName" = Post;
        }, recordType=CD_Post>
        """
    )
    let description = record.description
    #expect(description.hasPrefix("<CKRecord: 0x"))
    #expect(description == record.debugDescription)
    #expect(
      description.drop { $0 != ";" }
        == record.formatted(address: false).drop { $0 != ";" }
    )
  }

  @Test("Descriptions of data, numbers, names and assets have the documented form")
  func values() {
    let record = CKRecord(
      recordType: "CD_Tag",
      recordID: CKRecord.ID(recordName: "CD_Tag_UUID", zoneID: zoneID)
    )
    record["CD_color"] = Data("Some example data".utf8)
    record["CD_post"] = "CD_VideoPost_UUID"
    record["CD_count"] = 12
    record["CD_below"] = -1
    record["CD_ratio"] = 1.5
    record["CD_quote"] = "say \"hi\""
    record["CD_empty"] = ""
    record["CD_long"] = Data(repeating: 0xAB, count: 30)
    record["CD_when"] = Date(timeIntervalSince1970: 0)
    record["CD_list"] = ["a", "b c"]
    record.setFieldValue(
      .asset(
        CKAsset(
          fileURL: URL(fileURLWithPath: "/f.fxd"),
          storedFile: nil,
          uuid: UUID(uuid: (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15))
        )
      ),
      forKey: "CD_name_ckAsset"
    )
    #expect(
      record.formatted(address: false, wrapped: true) == """
        <CKRecord: 0x0; recordID=CD_Tag_UUID:
        (com.apple.coredata.cloudkit.zone:__defaultOwner__), values={
        "CD_below" = "-1";
        "CD_color" = {length = 17, bytes = 0x536f6d65206578616d706c652064617461};
        "CD_count" = 12;
        "CD_empty" = "";
        "CD_list" = (
            a,
            "b c"
        );
        "CD_long" = {length = 30, bytes = 0xabababab abababab abababab abababab ... abababab \
        abababab };
        "CD_name_ckAsset" = "<CKAsset: 0x0;
        path=/f.fxd,
        UUID=00010203-0405-0607-0809-0A0B0C0D0E0F>";
        "CD_post" = "CD_VideoPost_UUID";
        "CD_quote" = "say \\"hi\\"";
        "CD_ratio" = "1.5";
        "CD_when" = "1970-01-01 00:00:00 +0000";
        }, recordType=CD_Tag>
        """
    )
  }
}
