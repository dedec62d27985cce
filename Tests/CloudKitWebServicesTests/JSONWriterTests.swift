import Foundation
import Testing

@testable import CloudKitWebServices

@Suite("JSONWriter")
struct JSONWriterTests {
  @Test("JSONWriter writes field types as JSONEncoder does", arguments: FieldValueTests.everyType)
  func fields(content: FieldContent, json: String) throws {
    for asStrings in [false, true] {
      var record = RecordDictionary(
        recordName: "r",
        fields: ["f": FieldValue(content), "e": FieldValue(content)]
      )
      record.writesNumbersAsStrings = asStrings
      var writer = JSONWriter()
      writer.record(record)
      let written = writer.finished()
      #expect(try written == WireCoding.encode(record))
    }
  }

  @Test("JSONWriter writes a whole record as JSONEncoder does")
  func record() throws {
    let zone = ZoneID(zoneName: "z", ownerRecordName: "_o", zoneType: "DEFAULT_ZONE")
    let record = RecordDictionary(
      recordName: "r",
      recordType: "T",
      recordChangeTag: "1-a",
      fields: [
        "b": FieldValue(.double(1e300), isEncrypted: true), "a": FieldValue(.double(-2)),
        "place": FieldValue(
          .location(
            LocationValue(
              latitude: 1.25,
              longitude: -2,
              horizontalAccuracy: 1,
              verticalAccuracy: 2,
              altitude: 3,
              speed: 4,
              course: 5,
              timestamp: 6
            )
          )
        ),
        "to": FieldValue(
          .reference(ReferenceValue(recordName: "x", zoneID: zone, action: .validate))
        ),
        "file": FieldValue(
          .asset(
            AssetValue(
              fileChecksum: "c",
              size: 1,
              receipt: "r",
              wrappingKey: "w",
              referenceChecksum: "s",
              downloadURL: "http://a/b?c=d"
            )
          )
        ),
      ],
      zoneID: zone,
      created: ServerStamp(timestamp: 1, userRecordName: "_u", deviceID: "d"),
      modified: ServerStamp(timestamp: 2),
      deleted: false,
      parent: ParentDictionary(recordName: "p", zoneID: zone)
    )
    var writer = JSONWriter()
    writer.record(record)
    let written = writer.finished()
    #expect(try written == WireCoding.encode(record))
    #expect(try WireCoding.decode(RecordDictionary.self, from: written) == record)
  }

  @Test("JSONWriter writes every digit of an integer")
  func digits() throws {
    let numbers: [Int64] = [0, 1, -1, 9, 10, -10, 99, 100, 1_234_567_890, .max, .min]
    var writer = JSONWriter()
    writer.beginArray()
    for number in numbers { writer.integer(number) }
    writer.endArray()
    let written = writer.finished()
    let expected = numbers.map(String.init).joined(separator: ",")
    #expect(String(decoding: written, as: UTF8.self) == "[\(expected)]")
  }

  @Test("Output after a mark can be discarded without a trace")
  func takingBack() throws {
    var writer = JSONWriter(capacity: 1)
    writer.beginObject()
    writer.key("a")
    writer.encoded(Data("[1,2]".utf8))
    let mark = writer.mark
    writer.key("gone")
    writer.string(String(repeating: "x", count: 1000))
    writer.takeBack(to: mark)
    writer.members(of: Data(#"{"b":2}"#.utf8))
    writer.members(of: Data("{}".utf8))
    writer.piece(#","c":"#)
    writer.boolean(true)
    writer.endObject()
    let written = writer.finished()
    #expect(String(decoding: written, as: UTF8.self) == #"{"a":[1,2],"b":2,"c":true}"#)
  }

  @Test(
    "JSONWriter preserves every character of a string",
    arguments: [
      "", "a", "\"\\/", "\u{0}\u{1}\u{8}\u{9}\u{A}\u{B}\u{C}\u{D}\u{1F}\u{7F}", "é🌧\u{2028}",
      "\r\n", "e\u{301}",
    ]
  )
  func texts(text: String) throws {
    var writer = JSONWriter()
    writer.beginArray()
    writer.string(text)
    writer.string(text)
    writer.endArray()
    let written = writer.finished()
    #expect(try WireCoding.decode([String].self, from: written) == [text, text])
  }
}
