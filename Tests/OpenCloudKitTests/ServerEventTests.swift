import Foundation
import OpenCloudKit
import Testing

@Suite("Server-sent events")
struct ServerEventTests {
  private static let text = """
    retry: 1000\r\nid: run-4\r\n: listening\r\n\r\nid: run-5\nevent: notification\n\
    data: {"a":\ndata: 1}\n\n:\n\nevent: resync\rdata:{}\r\rdata: last\n\nid: cut
    """
  private static let events = [
    ServerEvent(id: "run-4", name: "message", data: nil),
    ServerEvent(id: "run-5", name: "notification", data: Data("{\"a\":\n1}".utf8)),
    ServerEvent(id: nil, name: "resync", data: Data("{}".utf8)),
    ServerEvent(id: nil, name: "message", data: Data("last".utf8)),
  ]

  @Test("Parsed events do not depend on how the bytes are split")
  func cuts() throws {
    let bytes = Data(Self.text.utf8)
    for place in 0...bytes.count {
      var reader = ServerEventReader()
      let first = try reader.read(bytes.prefix(place))
      let second = try reader.read(bytes.suffix(from: place))
      #expect(first + second == Self.events)
    }
    var reader = ServerEventReader()
    var found: [ServerEvent] = []
    for byte in bytes { found += try reader.read(Data([byte])) }
    #expect(found == Self.events)
  }

  @Test("An event over the size limit is refused and not buffered")
  func endless() throws {
    var reader = ServerEventReader()
    let piece = Data(repeating: UInt8(ascii: "x"), count: 1 << 16)
    for _ in 0..<16 { _ = try reader.read(piece) }
    #expect(throws: ServerEventReader.Malformed.self) { try reader.read(piece) }
  }
}
