import CloudKitWebServices
import Foundation
import Testing

@testable import CloudKitServer

@Suite("Multipart uploads")
struct MultipartFileTests {
  private static let type = #"multipart/form-data; charset=utf-8; boundary="--4F""#

  /// An upload's body as some clients write it.
  private static func form(_ file: Data, trailer: String = "") -> Data {
    Data(
      ("----4F\r\nContent-Disposition: form-data; name=\"files\"; filename=\"f\"\r\n"
        + "Content-Type: application/octet-stream\r\n\r\n").utf8
    ) + file + Data("\r\n----4F--\r\n\(trailer)".utf8)
  }

  /// The file, parsed from pieces of a size.
  private func read(_ body: Data, pieces size: Int, type: String = type) throws -> Data {
    var form = try #require(MultipartFile(contentType: type))
    var file = Data()
    var rest = body
    while !rest.isEmpty {
      file += try form.take(Data(rest.prefix(size)))
      rest = Data(rest.dropFirst(size))
    }
    return try file + form.finish()
  }

  @Test(
    "The file is the part between its head and the boundary, for any size of the pieces",
    arguments: [
      "", "x", "\r\n", "--", "\r\n--", "\r\n----4", "\r\n----\r\n----4G\r\n", "a\r\n\r\nb",
      "\u{0}\u{1}\r\n----4", String(repeating: "abc\r\n", count: 200),
    ]
  )
  func content(text: String) throws {
    let file = Data(text.utf8)
    let body = Self.form(file, trailer: "ignored")
    for size in [1, 2, 3, 7, 64, 100, body.count] {
      #expect(try read(body, pieces: size) == file, "in pieces of \(size)")
    }
  }

  @Test("The first of several parts is the file")
  func firstPart() throws {
    let body = Self.form(Data("one".utf8)) + Self.form(Data("two".utf8))
    #expect(try read(body, pieces: 5) == Data("one".utf8))
  }

  @Test("An empty part may end immediately after its head")
  func emptyPart() throws {
    let body = Data("----4F\r\nContent-Type: text/plain\r\n\r\n----4F--\r\n".utf8)
    #expect(try read(body, pieces: 3) == Data())
  }

  @Test(
    "A body that does not begin with its boundary is the file itself",
    arguments: ["", "x", "hello ----4F", "----4", "----4G\r\n\r\n"]
  )
  func plainBody(text: String) throws {
    let body = Data(text.utf8)
    for size in [1, 4, 100] {
      #expect(try read(body, pieces: size) == body)
    }
  }

  @Test("An incomplete form is refused, at any length")
  func brokenOff() throws {
    let whole = Self.form(Data("file".utf8))
    let end = try #require(whole.range(of: Data("\r\n----4F--".utf8))).upperBound - 2
    for length in 6..<end {
      #expect(throws: ErrorDictionary.self, "\(length) bytes") {
        try read(Data(whole.prefix(length)), pieces: 4)
      }
    }
  }

  @Test("A head without an end is refused before it is buffered completely")
  func endlessHead() throws {
    var form = try #require(MultipartFile(contentType: Self.type))
    _ = try form.take(Data("----4F\r\n".utf8))
    #expect(throws: ErrorDictionary.self) {
      for _ in 0..<100 { _ = try form.take(Data(count: 1000)) }
    }
  }

  @Test(
    "Other content types are not parsed as forms",
    arguments: [
      "application/octet-stream", "text/plain; boundary=x", "multipart/mixed; boundary=x",
      "multipart/form-data", "multipart/form-data; boundary=", "",
      "multipart/form-data; boundary=" + String(repeating: "x", count: 71),
    ]
  )
  func others(type: String) {
    #expect(MultipartFile(contentType: type) == nil)
  }

  @Test("A file uploaded as a form is the file that is saved and downloaded", .everyEngine)
  func upload() async throws {
    let person = try await TestServer { $0.assetSize = 1000 }.person()
    try await person.makeZone()
    func upload(_ file: Data) async throws -> WebServiceResponse {
      await person.server.service.respond(
        to: WebServiceRequest(
          method: "POST",
          path: try await person.uploadPath(),
          headers: ["content-type": Self.type, "content-length": "\(Self.form(file).count)"],
          body: Self.form(file)
        )
      )
    }
    let bytes = Data((0..<1000).map { UInt8(truncatingIfNeeded: $0) })
    let uploaded = try await WireCoding.decode(
      UploadedFileResponse.self,
      from: upload(bytes).body
    ).singleFile
    // The limit applies to the file, not to the rest of the form.
    #expect(uploaded.size == 1000)
    let record = try await person.save(.create, "a", ["file": .asset(uploaded)])
    let url = try #require(record.content("file")?.assets.first?.downloadURL)
    #expect(await person.download(url).body == bytes)
    #expect(try await upload(bytes + Data([1])).status == 413)
  }
}
