import Foundation
import Testing

@testable import CloudKitServer

@Suite("Readers")
struct ReaderIDTests {
  /// The texts are in tokens that were issued by earlier versions.
  private static let encodings: [(reader: ReaderID, text: String)] = [
    (.anonymous, ""), (.user("_0123abc"), "_0123abc"),
    (.visitor(ofShare: "11-2-Share-A"), "_visitor-11-2-Share-A"),
  ]

  @Test("A reader is encoded as the text that tokens of earlier versions contain")
  func texts() throws {
    for (reader, text) in Self.encodings {
      #expect(reader.encoded == text)
      #expect(ReaderID(encoded: text) == reader)
      let json = try JSONEncoder().encode([reader])
      #expect(String(decoding: json, as: UTF8.self) == "[\"\(text)\"]")
      #expect(try JSONDecoder().decode([ReaderID].self, from: json) == [reader])
    }
  }

  @Test("Visitors of one share are one reader, and those of another share are not")
  func visits() {
    func visit(_ share: String, expires: Int64) -> PublicVisit {
      PublicVisit(
        apiToken: "t",
        container: "c",
        environment: .development,
        partition: 11,
        owner: "_owner",
        zone: 2,
        zoneName: "z",
        share: share,
        expires: expires
      )
    }
    #expect(visit("a", expires: 1).reader == .visitor(ofShare: "11-2-a"))
    #expect(visit("a", expires: 1).reader == visit("a", expires: 2).reader)
    #expect(visit("a", expires: 1).reader != visit("b", expires: 1).reader)
  }

  @Test("Only a signed-in user has a record name")
  func users() {
    #expect(ReaderID.user("_1").user == "_1")
    #expect(ReaderID.anonymous.user == nil)
    #expect(ReaderID.visitor(ofShare: "_1").user == nil)
  }
}
