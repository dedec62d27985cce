import CloudKitWebServices
import Effects
import Foundation
import OpenCloudKit
import Synchronization

/// A container whose transport returns prepared replies.
final class ClientRig: CloudKitTransport {
  private struct State {
    var replies: [Data] = []
    var next = 0
    var bodies: [Data] = []
  }

  private let state = Mutex(State())

  /// The container, with a signed-in user.
  var container: CKContainer {
    CKContainer(
      identifier: "iCloud.org.example.benchmark",
      configuration: CKContainerConfiguration(
        url: URL(string: "http://127.0.0.1:1"),
        containerIdentifiers: ["iCloud.org.example.benchmark"],
        apiToken: "api",
        webAuthToken: "token"
      ),
      transport: self
    )
  }

  /// Sets the replies, which are returned one after the other.
  func answer(_ replies: [Data]) {
    state.withLock { $0 = State(replies: replies) }
  }

  /// The bodies of the recorded requests.
  var bodies: [Data] { state.withLock { $0.bodies } }

  func send(_ request: WebServiceRequest) async throws -> WebServiceResponse {
    state.withLock { state in
      // Only the first body is kept, to measure JSON with: others would count as the client's
      // memory.
      if state.bodies.isEmpty { state.bodies.append(request.body) }
      let reply = state.replies[min(state.next, state.replies.count - 1)]
      state.next += 1
      return WebServiceResponse(status: 200, headers: [:], body: reply)
    }
  }

  // MARK: Records

  /// A typical record: eight fields of several types, about 400 bytes of values.
  static func record(_ number: Int, in zone: CKRecordZone.ID) -> CKRecord {
    let record = CKRecord(
      recordType: "Post",
      recordID: CKRecord.ID(recordName: name(number), zoneID: zone)
    )
    record["title"] = "Post number \(number)"
    record["content"] = String(repeating: "Lorem ipsum dolor “sit” amet. ", count: 8)
    record["likes"] = number
    record["rating"] = Double(number) / 7
    record["isRead"] = number % 2 == 0
    record["written"] = Date(timeIntervalSince1970: 1_700_000_000 + Double(number))
    record["thumbnail"] = Data(repeating: UInt8(truncatingIfNeeded: number), count: 64)
    record["author"] = CKRecord.Reference(
      recordID: CKRecord.ID(recordName: "author-\(number % 100)", zoneID: zone),
      action: .none
    )
    return record
  }

  private static func name(_ number: Int) -> String {
    "5A3C0F4E-0000-4000-8000-" + String(format: "%012d", number)
  }

  /// The same record in the service's reply.
  static func dictionary(_ number: Int, in zone: CKRecordZone.ID) -> RecordDictionary {
    let stamp = ServerStamp(
      timestamp: 1_700_000_000_000 + Int64(number),
      userRecordName: "_0123456789abcdef0123456789abcdef",
      deviceID: "1"
    )
    return RecordDictionary(
      recordName: name(number),
      recordType: "Post",
      recordChangeTag: String(number, radix: 36),
      fields: [
        "title": FieldValue(.string("Post number \(number)")),
        "content": FieldValue(
          .string(String(repeating: "Lorem ipsum dolor “sit” amet. ", count: 8))
        ),
        "likes": FieldValue(.int64(Int64(number))),
        "rating": FieldValue(.double(Double(number) / 7)),
        "isRead": FieldValue(.int64(number % 2 == 0 ? 1 : 0)),
        "written": FieldValue(
          .timestamp(TimestampValue(milliseconds: 1_700_000_000_000 + Int64(number) * 1000))
        ),
        "thumbnail": FieldValue(
          .bytes(Data(repeating: UInt8(truncatingIfNeeded: number), count: 64))
        ),
        "author": FieldValue(
          .reference(
            ReferenceValue(
              recordName: "author-\(number % 100)",
              zoneID: ZoneID(zoneName: zone.zoneName),
              action: ReferenceAction.none
            )
          )
        ),
      ],
      zoneID: ZoneID(zoneName: zone.zoneName, ownerRecordName: stamp.userRecordName),
      created: stamp,
      modified: stamp
    )
  }

  /// The reply to a save of records.
  static func saved(_ numbers: Range<Int>, in zone: CKRecordZone.ID) throws -> Data {
    try WireCoding.encode(
      RecordsResponse(
        records: numbers.map { number in
          var record = dictionary(number, in: zone)
          record.fields = [:]
          return .success(record)
        }
      )
    )
  }

  /// The reply to a look-up of records.
  static func found(_ numbers: Range<Int>, in zone: CKRecordZone.ID) throws -> Data {
    try WireCoding.encode(
      RecordsResponse(records: numbers.map { .success(dictionary($0, in: zone)) })
    )
  }

  /// A page of a zone's feed.
  static func changes(
    _ numbers: Range<Int>,
    in zone: CKRecordZone.ID,
    isLast: Bool
  ) throws -> Data {
    try WireCoding.encode(
      ZoneChangesResponse(zones: [
        .success(
          ZoneChanges(
            zoneID: ZoneID(zoneName: zone.zoneName),
            records: numbers.map { .success(dictionary($0, in: zone)) },
            syncToken: "\(numbers.upperBound)",
            moreComing: !isLast
          )
        )
      ])
    )
  }
}
