import CloudKitServer
import CloudKitWebServices
import Foundation
import Testing

extension Person {
  /// Uploads bytes for a field and returns what to save in it.
  func upload(_ data: Data, method: String = "POST") async throws -> AssetValue {
    let response = await server.send(method, try await uploadPath(), body: data)
    guard response.status == 200 else {
      throw try WireCoding.decode(ErrorDictionary.self, from: response.body)
    }
    return try WireCoding.decode(UploadedFileResponse.self, from: response.body).singleFile
  }

  func uploadPath() async throws -> String {
    let reply: UploadTokensResponse = try await call(
      .uploadAssets,
      UploadTokensRequest(
        tokens: [UploadTokenField(fieldName: "file", recordName: "a", recordType: "Note")],
        zoneID: TestServer.zone
      )
    )
    return pathOnly(try reply.tokens[0].get().url)
  }

  func download(_ url: String) async -> WebServiceResponse {
    await server.send("GET", pathOnly(url))
  }

  private func pathOnly(_ url: String) -> String {
    #expect(url.hasPrefix("http://127.0.0.1:8080/"))
    return String(url.dropFirst("http://127.0.0.1:8080".count))
  }
}

@Suite("Assets", .everyEngine)
struct AssetTests {
  private func world(_ change: (inout ServiceLimits) -> Void = { _ in }) async throws -> Person {
    let person = try await TestServer(limits: change).person()
    try await person.makeZone()
    return person
  }

  @Test("A file is uploaded, saved in a record and downloaded", arguments: ["POST", "PUT"])
  func roundTrip(method: String) async throws {
    let person = try await world()
    let bytes = Data((0..<10_000).map { UInt8(truncatingIfNeeded: $0 * 7) })
    let uploaded = try await person.upload(bytes, method: method)
    #expect(uploaded.size == 10_000)
    try await person.save(.create, "a", ["file": .asset(uploaded)])
    let asset = try #require(try await person.lookup("a").content("file")?.assets.first)
    #expect(asset.fileChecksum == uploaded.fileChecksum)
    #expect(asset.receipt == nil)
    let file = await person.download(try #require(asset.downloadURL))
    #expect(file.body == bytes)
    #expect(file.headers["content-type"] == "application/octet-stream")
  }

  @Test("An empty file and lists of files work")
  func emptyAndLists() async throws {
    let person = try await world()
    let files = [try await person.upload(Data()), try await person.upload(Data([1]))]
    try await person.save(.create, "a", ["files": .assetList(files)])
    let found = try #require(try await person.lookup("a").content("files")?.assets)
    #expect(found.map(\.size) == [0, 1])
    #expect(await person.download(try #require(found[0].downloadURL)).body == Data())
  }

  @Test("Saving back what was read keeps the file; saving it elsewhere needs a new reference")
  func keptAndRereferenced() async throws {
    let person = try await world()
    try await person.save(.create, "a", ["file": .asset(try await person.upload(Data([1])))])
    let read = try await person.lookup("a")
    let content = try #require(read.content("file"))
    let kept = try await person.save(.update, "a", ["file": content], tag: read.recordChangeTag)
    #expect(kept.content("file")?.assets[0].fileChecksum == content.assets[0].fileChecksum)

    let stolen = try await person.extended.modify([.make(.create, "b", ["file": content])])
    #expect(stolen[0].error?.extension?.code == .assetNotAvailable)
    let reply: RereferenceAssetsResponse = try await person.call(
      .rereferenceAssets,
      RereferenceAssetsRequest(
        assets: [
          AssetLocation(recordName: "a", fieldName: "file"),
          AssetLocation(recordName: "no", fieldName: "file"),
        ],
        zoneID: TestServer.zone
      )
    )
    #expect(reply.assets[1].error?.serverErrorCode == .notFound)
    try await person.save(.create, "b", ["file": .asset(try reply.assets[0].get())])
    let url = try #require(try await person.lookup("b").content("file")?.assets[0].downloadURL)
    #expect(await person.download(url).body == Data([1]))
  }

  @Test("A receipt serves its own database and its own file")
  func receipts() async throws {
    let person = try await world()
    var receipt = try await person.upload(Data([1]))
    let other = try await person.server.person("bob")
    try await other.makeZone()
    #expect(
      try await other.modify([.make(.create, "a", ["file": .asset(receipt)])])[0].error != nil
    )
    receipt.fileChecksum = try await person.upload(Data([2])).fileChecksum
    #expect(
      try await person.modify([.make(.create, "a", ["file": .asset(receipt)])])[0].error != nil
    )
    receipt = AssetValue(fileChecksum: "x", size: 1, receipt: "x.y")
    #expect(
      try await person.modify([.make(.create, "a", ["file": .asset(receipt)])])[0].error != nil
    )
  }

  @Test("Upload, receipt and download end when their time is over")
  func expiry() async throws {
    let person = try await world()
    let path = try await person.uploadPath()
    let receipt = try await person.upload(Data([1]))
    try await person.save(.create, "a", ["file": .asset(receipt)])
    let url = try #require(try await person.lookup("a").content("file")?.assets[0].downloadURL)
    person.server.clock.advance(seconds: 15 * 60 - 1)
    #expect(await person.server.send("POST", path).status == 200)
    person.server.clock.advance(seconds: 2)
    #expect(await person.server.send("POST", path).status == 403)
    person.server.clock.advance(seconds: 3600)
    #expect(await person.download(url).status == 403)
    person.server.clock.advance(seconds: 24 * 3600)
    #expect(
      try await person.modify([.make(.create, "b", ["file": .asset(receipt)])])[0].error != nil
    )
  }

  @Test("A file has at most so many bytes", arguments: [99, 100, 101])
  func sizeLimit(size: Int) async throws {
    let person = try await world { $0.assetSize = 100 }
    if size <= 100 {
      #expect(try await person.upload(Data(count: size)).size == Int64(size))
    } else {
      let error = await #expect(throws: ErrorDictionary.self) {
        try await person.upload(Data(count: size))
      }
      #expect(error?.serverErrorCode == .quotaExceeded)
    }
  }

  @Test(
    "URLs that the server did not make open nothing",
    arguments: [
      "/assets", "/assets/upload", "/assets/upload/x", "/assets/download/x.y",
      "/assets/download/../../etc/passwd",
    ]
  )
  func foreignURLs(path: String) async throws {
    let server = try await TestServer()
    for method in ["GET", "POST"] {
      #expect([403, 404].contains(await server.send(method, path).status))
    }
  }
}
