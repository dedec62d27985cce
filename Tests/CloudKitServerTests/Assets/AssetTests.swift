import CloudKitWebServices
import Foundation
import Testing

@testable import CloudKitServer

extension Person {
  /// Uploads bytes for a field and returns the value to save.
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

  func download(_ url: String, headers: [String: String] = [:]) async -> WebServiceResponse {
    await server.service.respond(
      to: WebServiceRequest(method: "GET", path: pathOnly(url), headers: headers)
    )
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

  @Test("A record without a name can use an upload, with any name in the upload's reply")
  func namelessRecord() async throws {
    let person = try await world()
    let reply: UploadTokensResponse = try await person.call(
      .uploadAssets,
      UploadTokensRequest(
        tokens: [UploadTokenField(fieldName: "file", recordType: "Note")],
        zoneID: TestServer.zone
      )
    )
    let token = try reply.tokens[0].get()
    let path = token.url.replacing("http://127.0.0.1:8080", with: "")
    let uploaded = try WireCoding.decode(
      UploadedFileResponse.self,
      from: await person.server.send("POST", path, body: Data([1, 2, 3])).body
    ).singleFile
    let saved = try await person.save(.create, nil, ["file": .asset(uploaded)])
    #expect(saved.recordName != token.recordName)
    #expect(saved.content("file")?.assets.first?.size == 3)
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

  @Test("An empty file and lists of files can be saved")
  func emptyAndLists() async throws {
    let person = try await world()
    let files = [try await person.upload(Data()), try await person.upload(Data([1]))]
    try await person.save(.create, "a", ["files": .assetList(files)])
    let found = try #require(try await person.lookup("a").content("files")?.assets)
    #expect(found.map(\.size) == [0, 1])
    #expect(await person.download(try #require(found[0].downloadURL)).body == Data())
  }

  @Test("Saving a value as it was read keeps the file; saving it elsewhere needs a new reference")
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

  @Test("A receipt is valid for its own database and its own file")
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

  @Test("A receipt from before the server was restored is refused: its file may be missing")
  func receiptOfFormerIncarnation() async throws {
    let person = try await world()
    let lost = try await person.upload(Data([1]))
    try await person.server.service.beginNewIncarnation()
    let refused = try await person.modify([.make(.create, "a", ["file": .asset(lost)])])
    #expect(refused[0].error?.serverErrorCode == .badRequest)
    try await person.save(.create, "a", ["file": .asset(try await person.upload(Data([1])))])
  }

  @Test("A field is saved again with its receipt after the receipt's time")
  func repeatedReceipt() async throws {
    let person = try await world()
    let receipt = try await person.upload(Data([1]))
    let other = try await person.upload(Data([2]))
    try await person.save(.create, "a", ["file": .asset(receipt)])
    person.server.clock.advance(seconds: 25 * 3600)
    try await person.save(.forceUpdate, "a", ["file": .asset(receipt)])
    #expect(try await person.lookup("a").content("file")?.assets[0].size == 1)
    // Another file, or another record, needs a receipt that is valid.
    for (name, asset) in [("a", other), ("b", receipt)] {
      let operation = RecordOperation.make(.forceUpdate, name, ["file": .asset(asset)])
      let refused = try await person.modify([operation])
      #expect(refused[0].error?.extension == nil)
      #expect(refused[0].error?.serverErrorCode == .badRequest)
    }
  }

  @Test("Upload, receipt and download expire")
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

  @Test("URLs that are rights in themselves have the rate of a site")
  func rate() async throws {
    let person = try await world {
      $0.requestsPerSecond = 100
      $0.requestBurst = 100
      $0.networksPerSite = 0.1
    }
    let uploaded = try await person.upload(Data([1]))
    try await person.save(.create, "a", ["file": .asset(uploaded)])
    let url = try #require(try await person.lookup("a").content("file")?.assets[0].downloadURL)
    var statuses: [Int] = []
    // Ten are taken at once, and the upload was one.
    for _ in 0..<10 { statuses.append(await person.download(url).status) }
    #expect(statuses == Array(repeating: 200, count: 9) + [429])
    // The person's own requests have another rate.
    _ = try await person.lookup("a")
    person.server.clock.advance(seconds: 1)
    #expect(await person.download(url).status == 200)
  }

  @Test("A file larger than the limit is refused", arguments: [99, 100, 101])
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
    "A range of a file is sent, an invalid one is ignored, one after the end is refused",
    arguments: [
      (nil, 200, "0123456789", nil), ("bytes=0-3", 206, "0123", "bytes 0-3/10"),
      ("bytes=4-", 206, "456789", "bytes 4-9/10"), ("bytes=-3", 206, "789", "bytes 7-9/10"),
      ("bytes=-30", 206, "0123456789", "bytes 0-9/10"), ("bytes=9-9", 206, "9", "bytes 9-9/10"),
      ("bytes=5-99", 206, "56789", "bytes 5-9/10"), ("bytes=10-", 416, nil, "bytes */10"),
      ("bytes=-0", 416, nil, "bytes */10"), ("bytes=3-2", 200, "0123456789", nil),
      ("bytes=0-1,3-4", 200, "0123456789", nil), ("lines=1-2", 200, "0123456789", nil),
      ("bytes=a-b", 200, "0123456789", nil), ("bytes=-", 200, "0123456789", nil),
      ("bytes=99999999999999999999-", 416, nil, "bytes */10"),
      ("bytes=1-99999999999999999999", 206, "123456789", "bytes 1-9/10"),
    ] as [(String?, Int, String?, String?)]
  )
  func ranges(header: String?, status: Int, body: String?, contentRange: String?) async throws {
    let person = try await world()
    let file = try await person.upload(Data("0123456789".utf8))
    try await person.save(.create, "a", ["file": .asset(file)])
    let url = try #require(try await person.lookup("a").content("file")?.assets[0].downloadURL)
    let reply = await person.download(url, headers: header.map { ["range": $0] } ?? [:])
    #expect(reply.status == status)
    #expect(reply.headers["content-range"] == contentRange)
    if let body { #expect(String(decoding: reply.body, as: UTF8.self) == body) }
  }

  @Test("A file that a client has is not sent again, and parts of different files are not combined")
  func validators() async throws {
    let person = try await world()
    let file = try await person.upload(Data("0123456789".utf8))
    try await person.save(.create, "a", ["file": .asset(file)])
    let url = try #require(try await person.lookup("a").content("file")?.assets[0].downloadURL)
    let whole = await person.download(url)
    let form = whole.headers[WebServiceName.checksumForm]
    #expect(form == WebServiceName.checksumFormValue)
    let tag = try #require(whole.headers["etag"])
    #expect(await person.download(url, headers: ["if-none-match": tag]).status == 304)
    let range = ["range": "bytes=0-1"]
    let same = await person.download(url, headers: range.merging(["if-range": tag]) { $1 })
    #expect(same.status == 206)
    let other = await person.download(url, headers: range.merging(["if-range": "\"x\""]) { $1 })
    #expect(other.status == 200)
  }

  @Test("A file is sent as an attachment that no browser opens as a page")
  func harmless() async throws {
    let person = try await world()
    let file = try await person.upload(Data("<script>alert(1)</script>".utf8))
    try await person.save(.create, "a", ["file": .asset(file)])
    let url = try #require(try await person.lookup("a").content("file")?.assets[0].downloadURL)
    let reply = await person.download(url)
    #expect(reply.headers["content-disposition"] == "attachment")
    #expect(reply.headers["x-content-type-options"] == "nosniff")
    #expect(reply.headers["content-type"] == "application/octet-stream")
    #expect(reply.headers["content-security-policy"]?.hasPrefix("sandbox") == true)
  }

  @Test("Equal bytes uploaded twice are two files, and their location is in no reply")
  func randomNames() async throws {
    let person = try await world()
    let files = [try await person.upload(Data([1])), try await person.upload(Data([1]))]
    #expect(files[0].fileChecksum == files[1].fileChecksum)
    #expect(files[0].receipt != files[1].receipt)
    for (name, file) in zip(["a", "b"], files) {
      try await person.save(.create, name, ["file": .asset(file)])
    }
    let lookup = try WireCoding.encode(
      LookupRecordsRequest(records: [LookupRecord(recordName: "a")], zoneID: TestServer.zone)
    )
    let reply = await person.send(.lookupRecords, lookup)
    #expect(!String(decoding: reply.body, as: UTF8.self).contains("\"blob\""))
    // A location that a client sends is ignored.
    let forged = AssetValue(
      fileChecksum: files[0].fileChecksum,
      size: 1,
      blob: "00"
    )
    let saved = try await person.modify([.make(.create, "c", ["file": .asset(forged)])])
    #expect(saved[0].error?.serverErrorCode == .badRequest)
  }

  @Test("A file is removed a month after its last use, and not while a receipt or a use is valid")
  func garbage() async throws {
    let person = try await world()
    let service = person.server.service
    let day = 24.0 * 3600
    let kept = try await person.upload(Data("kept".utf8))
    let dropped = try await person.upload(Data("dropped".utf8))
    _ = try await person.upload(Data("never saved".utf8))
    try await person.save(.create, "a", ["file": .asset(kept)])
    try await person.save(.create, "b", ["file": .asset(dropped)])
    #expect(try await service.assets.fileCount() == 3)
    person.server.clock.advance(seconds: day + 1)
    try await service.housekeep()
    #expect(try await service.assets.fileCount() == 3)
    let token = try await person.server.person()
    try await token.save(.forceDelete, "b")
    try await service.housekeep()
    person.server.clock.advance(seconds: 30 * day - 1)
    try await service.housekeep()
    #expect(try await service.assets.fileCount() == 2)
    person.server.clock.advance(seconds: 2)
    try await service.housekeep()
    #expect(try await service.assets.fileCount() == 1)
  }

  @Test(
    "An upload that no record has used is removed after its receipt's time, without a grace period"
  )
  func unusedUploads() async throws {
    let person = try await world()
    let service = person.server.service
    let id = try service.storage.partition(
      PartitionKey(
        container: TestServer.container,
        environment: .development,
        scope: .private,
        owner: try await person.userRecordName
      )
    )
    let empty = try await service.quotas.usedBytes(in: id)
    let used = try await person.upload(Data("used for a moment".utf8))
    let late = try await person.upload(Data("late".utf8))
    _ = try await person.upload(Data("never".utf8))
    try await person.save(.create, "a", ["file": .asset(used)])
    try await person.save(.forceDelete, "a")
    let hour = 3600.0
    person.server.clock.advance(seconds: 23 * hour)
    try await service.housekeep()
    let later = try await person.server.person()
    try await later.save(.create, "b", ["file": .asset(late)])
    person.server.clock.advance(seconds: 2 * hour)
    try await service.housekeep()
    #expect(try await service.assets.fileCount() == 3)
    person.server.clock.advance(seconds: hour)
    try await service.housekeep()
    // A backup may refer to the file of the record that was deleted.
    #expect(try await service.assets.fileCount() == 2)
    let unused = try service.storage.read { try $0.entries(DirectoryRange(.unusedUpload)) }
    #expect(unused.isEmpty)
    person.server.clock.advance(seconds: 61)
    let files = Int64("used for a moment".utf8.count + "late".utf8.count + 2 * 4096)
    #expect(try await service.quotas.usedBytes(in: id) - empty < files + 2000)
    let again = try await person.server.person()
    let found = try await again.lookup("b").content("file")?.assets.first?.downloadURL
    #expect(await again.download(try #require(found)).body == Data("late".utf8))
  }

  @Test("In data that was replaced by an older copy an unused upload is kept like a used file")
  func unusedUploadsOfCopies() async throws {
    let person = try await world()
    let service = person.server.service
    _ = try await person.upload(Data("used in a newer copy".utf8))
    try service.storage.branchOff()
    for day in [2.0, 29] {
      person.server.clock.advance(seconds: day * 24 * 3600)
      try await service.housekeep()
      #expect(try await service.assets.fileCount() == 1)
    }
    person.server.clock.advance(seconds: 2 * 24 * 3600)
    try await service.housekeep()
    #expect(try await service.assets.fileCount() == 0)
  }

  @Test(
    "URLs that the server did not create are refused",
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

  @Test("An upload URL is valid for one file: a repeated upload gets the first reply, others none")
  func once() async throws {
    let person = try await world()
    let path = try await person.uploadPath()
    func send(_ text: String) async -> WebServiceResponse {
      await person.server.send("POST", path, body: Data(text.utf8))
    }
    let first = await send("one")
    #expect(first.status == 200)
    // The reply was lost: the client sends the file again.
    let again = await send("one")
    #expect(again.status == 200)
    let other = await send("two")
    let error = try WireCoding.decode(ErrorDictionary.self, from: other.body)
    #expect(error.serverErrorCode == .accessDenied)
    #expect(try await person.server.service.assets.fileCount() == 1)
    let file = try WireCoding.decode(UploadedFileResponse.self, from: again.body).singleFile
    try await person.save(.create, "a", ["file": .asset(file)])
    let saved = try await person.lookup("a").content("file")?.assets.first
    let bytes = await person.download(try #require(saved?.downloadURL)).body
    #expect(bytes == Data("one".utf8))
  }

  @Test(
    "The quota is checked during the upload itself",
    arguments: [-1, 0, 1],
    [true, false]
  )
  func uploadQuota(over: Int, isAnnounced: Bool) async throws {
    // Two files of 5,000 bytes in total and 4,096 each, and the zone's row.
    let person = try await TestServer(limits: { $0.userQuota = 5000 + 2 * 4096 + 200 }).person()
    try await person.makeZone()
    // All URLs are issued while there is room.
    let paths = [try await person.uploadPath(), try await person.uploadPath()]
    var statuses: [Int] = []
    for (path, size) in zip(paths, [3000, 2000 + over]) {
      let response = await person.server.service.respond(
        to: WebServiceRequest(
          method: "POST",
          path: path,
          headers: isAnnounced ? ["content-length": "\(size)"] : [:],
          body: Data(count: size)
        )
      )
      statuses.append(response.status)
    }
    #expect(statuses == [200, over > 0 ? 413 : 200])
    #expect(try await person.server.service.assets.fileCount() == (over > 0 ? 1 : 2))
  }
}
