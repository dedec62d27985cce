import Foundation
import Testing

@testable import CloudKitWebServices

/// Each form of a record has each member.
@Suite("Members of a record")
struct RecordMemberTests {
  private static let all = Set(RecordMember.allCases.map(\.rawValue))

  /// A record with every member.
  private static let full: RecordDictionary = {
    let person = ShareParticipant(participantId: "p")
    var record = RecordDictionary(
      recordName: "r",
      recordType: "T",
      recordChangeTag: "1",
      fields: ["f": FieldValue(.string("x"))],
      zoneID: ZoneID(zoneName: "z"),
      created: ServerStamp(timestamp: 1),
      modified: ServerStamp(timestamp: 2),
      deleted: false,
      parent: ParentDictionary(recordName: "p"),
      share: ReferenceValue(recordName: "s"),
      shortGUID: "g",
      createShortGUID: true,
      sharing: ShareDictionary(
        forRecord: SharedRootDictionary(recordName: "r"),
        publicPermission: .readOnly,
        participants: [person],
        owner: person,
        currentUserParticipant: person,
        requesters: [person],
        blocked: [person],
        sharingBase: SharingBase(publicPermission: .readOnly, participants: [person]),
        denyAccessRequests: true,
        stableUrl: StableURL(routingKey: "0"),
        displayedHostname: "h"
      )
    )
    record.hasPluginFields = true
    return record
  }()

  private func members(_ json: Data) throws -> [String: Any] {
    try #require(try JSONSerialization.jsonObject(with: json) as? [String: Any])
  }

  private func written(_ record: RecordDictionary) -> Data {
    var writer = JSONWriter()
    writer.record(record)
    return writer.finished()
  }

  @Test("The record of these tests sets every property")
  func complete() throws {
    let sharing = try #require(Self.full.sharing)
    for children in [Mirror(reflecting: Self.full).children, Mirror(reflecting: sharing).children] {
      for child in children {
        let value = Mirror(reflecting: child.value)
        #expect(value.displayStyle != .optional || !value.children.isEmpty, "\(child.label ?? "")")
      }
    }
  }

  @Test("The encoder and the writer write every member, and no other")
  func writing() throws {
    #expect(Set(try members(try WireCoding.encode(Self.full)).keys) == Self.all)
    #expect(Set(try members(written(Self.full)).keys) == Self.all)
  }

  @Test("The reader reads every member of a request alone, or leaves it to the decoder")
  func reading() throws {
    let full = try members(written(Self.full))
    for member in RecordMember.allCases where !RecordMember.ofReplies.contains(member) {
      let value = try #require(full[member.rawValue], "\(member)")
      let json = try JSONSerialization.data(withJSONObject: [member.rawValue: value])
      let read = RecordDictionary.read(json)
      if RecordMember.ofShares.contains(member) {
        #expect(read == nil, "\(member)")
      } else {
        #expect(read != nil && read != RecordDictionary(), "the reader skips \(member)")
      }
      let decoded = try JSONDecoder().decode(RecordDictionary.self, from: json)
      #expect(decoded != RecordDictionary(), "the decoder skips \(member)")
      if let read { #expect(read == decoded, "\(member)") }
    }
  }

  @Test("Members of replies alone are skipped by the reader and the decoder")
  func replies() throws {
    let full = try members(written(Self.full))
    for member in RecordMember.ofReplies {
      let value = try #require(full[member.rawValue], "\(member)")
      let json = try JSONSerialization.data(withJSONObject: [member.rawValue: value])
      #expect(RecordDictionary.read(json) == RecordDictionary(), "\(member)")
      #expect(try JSONDecoder().decode(RecordDictionary.self, from: json) == RecordDictionary())
    }
  }
}
