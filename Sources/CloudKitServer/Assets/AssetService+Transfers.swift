import CloudKitWebServices
import Crypto
import Effects
import Foundation

/// Serves the capability URLs: no file is ever in memory as a whole.
extension AssetService {
  /// Responds to a request below `/assets/`; the body is read from the source.
  func transfer(
    _ request: WebServiceRequest,
    _ target: RequestTarget,
    _ body: @escaping BodySource
  ) async throws -> StreamedResponse {
    switch (target.parts[1], request.method) {
    case ("upload", "POST"), ("upload", "PUT"):
      return StreamedResponse(try await upload(body, request, target.parts[2]))
    case ("download", "GET"): return try await download(request, target.parts[2])
    default: throw ErrorDictionary.noHandler
    }
  }

  /// Throws for a URL whose credential has ended; a URL of an earlier version only expires.
  private func check(_ credential: IssuingCredential?) throws {
    guard let credential else { return }
    guard try storage.read({ try credential.holds(in: $0, now: now) }) else {
      throw ErrorDictionary(
        .accessDenied,
        "the credential that requested this URL has ended; request another"
      )
    }
  }

  // MARK: Upload

  /// The permit of an upload URL whose user may still write.
  private func uploadPermit(_ text: String) throws -> UploadPermit {
    guard let permit = signer.open(text, as: UploadPermit.self, for: .upload) else {
      throw ErrorDictionary(.accessDenied, "this is not an upload URL of the server")
    }
    guard permit.expires > now else {
      throw ErrorDictionary(.accessDenied, "the upload URL has expired")
    }
    try check(permit.credential)
    if let shared = permit.shared,
      try !storage.read({ try shared.isWritable(by: permit.user, in: permit.partition, $0) })
    {
      throw ErrorDictionary(.accessDenied, "you may not write in the zone any more")
    }
    return permit
  }

  private var tooLarge: ErrorDictionary {
    ErrorDictionary(.quotaExceeded, "an asset has at most \(limits.assetSize) bytes")
  }

  private func upload(
    _ body: BodySource,
    _ request: WebServiceRequest,
    _ text: String
  ) async throws -> WebServiceResponse {
    let permit = try uploadPermit(text)
    let form = MultipartFile(contentType: request.headers[WebServiceName.contentType])
    if form == nil, let announced = request.headers["content-length"].flatMap({ Int($0) }),
      announced > limits.assetSize
    {
      throw tooLarge
    }
    try throttleUpload(permit)
    if let first = try firstUpload(of: permit) {
      return try await countingOpen(permit) { try await repeated(body, form, first, permit) }
    }
    // A form is a little longer than its file.
    let announced = request.headers["content-length"].flatMap { Int64($0) }
    let room = try await beginUpload(
      announced: announced.map { min(max($0, 0), Int64(limits.assetSize)) },
      permit
    )
    defer { endUpload(room) }
    let place = AssetPlace(permit.partition, effects.randomness.bytes(20).hexadecimal)
    let upload = try await store.begin(place)
    let received = try await receive(body, form, into: upload, room)
    let (digest, size) = received.result()
    let value = AssetValue(
      fileChecksum: digest.checksum,
      size: size,
      // Apple's service encrypts files and needs both; here they only complete the documented
      // format, for clients that expect it.
      wrappingKey: Data(SHA256.hash(data: Data(digest.checksum.utf8)).prefix(16))
        .base64EncodedString(),
      referenceChecksum: digest.checksum,
      blob: place.file
    )
    let recorded = try await recordOnce(value, upload, place, permit)
    traffic.received(Int64(size))
    return try uploaded(recorded, permit)
  }

  /// Receives the file of an upload, which is cancelled if that fails.
  private func receive(
    _ body: BodySource,
    _ form: MultipartFile?,
    into upload: any AssetUpload,
    _ room: UploadRoom
  ) async throws -> ReceivedFile {
    let received = ReceivedFile(limit: limits.assetSize, form: form)
    do {
      try await body { [self] data in
        countUpload(data.count, room.permit)
        // Bytes over the limit are read and discarded, because clients read no response before they
        // have sent the whole body.
        guard let part = try received.take(data) else { return }
        try await extend(room, to: Int64(received.size))
        try await upload.write(part)
      }
      if let rest = try received.finish() {
        try await extend(room, to: Int64(received.size))
        try await upload.write(rest)
      }
      guard received.fits else { throw tooLarge }
    } catch {
      await upload.cancel()
      throw error
    }
    return received
  }

  /// Replies to an upload whose URL was already used: with the first reply, if it is the same file.
  ///
  /// The bytes are compared as they are received and not stored; those beyond the first file's size
  /// are ignored.
  private func repeated(
    _ body: BodySource,
    _ form: MultipartFile?,
    _ first: AssetValue,
    _ permit: UploadPermit
  ) async throws -> WebServiceResponse {
    let received = ReceivedFile(limit: Int(first.size ?? 0), form: form)
    try await body { [self] data in
      countUpload(data.count, permit)
      _ = try received.take(data)
    }
    _ = try received.finish()
    let (digest, size) = received.result()
    guard received.fits, digest.checksum == first.fileChecksum, size == first.size else {
      throw Self.usedForAnotherFile
    }
    return try uploaded(first, permit)
  }

  private func uploaded(
    _ value: AssetValue,
    _ permit: UploadPermit
  ) throws -> WebServiceResponse {
    var value = value
    value.receipt = try receipt(permit.partition, for: value)
    return WebServiceResponse(
      status: 200,
      headers: [WebServiceName.checksumForm: WebServiceName.checksumFormValue],
      body: try WireCoding.encode(UploadedFileResponse(singleFile: value.withoutPlace))
    )
  }

  // MARK: Download

  /// The permit of a download URL whose user may still read.
  private func downloadPermit(_ text: String) throws -> DownloadPermit {
    guard let permit = signer.open(text, as: DownloadPermit.self, for: .download),
      AssetPlace.isFileName(permit.file)
    else {
      throw ErrorDictionary(.accessDenied, "this is not a download URL of the server")
    }
    guard permit.expires > now else {
      throw ErrorDictionary(.accessDenied, "the download URL has expired")
    }
    try check(permit.credential)
    if let source = permit.source,
      try !storage.read({ try source.isReadable(in: permit.partition, $0) })
    {
      throw ErrorDictionary(.accessDenied, "the record is not shared with you any more")
    }
    return permit
  }

  /// The headers of each reply of a download.
  private static func headers(of tag: String) -> [String: String] {
    [
      WebServiceName.contentType: "application/octet-stream",
      WebServiceName.checksumForm: WebServiceName.checksumFormValue,
      "accept-ranges": "bytes",
      "cache-control": "private, max-age=3600",
      "content-disposition": "attachment",
      "content-security-policy": "sandbox; default-src 'none'",
      "cross-origin-resource-policy": "cross-origin",
      "etag": tag,
      "x-content-type-options": "nosniff",
    ]
  }

  /// The part that a download requests: all of the file if `If-Range` names another version of it.
  private static func range(
    _ request: WebServiceRequest,
    _ tag: String,
    size: Int64
  ) -> ByteRange {
    let isSame = request.headers["if-range"].map { $0 == tag } ?? true
    return ByteRange(isSame ? request.headers["range"] : nil, size: size)
  }

  private func download(
    _ request: WebServiceRequest,
    _ text: String
  ) async throws -> StreamedResponse {
    let permit = try downloadPermit(text)
    let place = AssetPlace(permit.partition, permit.file)
    guard let size = try await store.size(of: place) else {
      throw ErrorDictionary(.notFound, "the asset is no longer there")
    }
    // A file never changes, so its name is its entity tag.
    let tag = "\"\(permit.file)\""
    var headers = Self.headers(of: tag)
    if request.headers["if-none-match"] == tag {
      return StreamedResponse(WebServiceResponse(status: 304, headers: headers))
    }
    let range: Range<Int64>
    var status = 200
    switch Self.range(request, tag, size: size) {
    case .whole: range = 0..<size
    case .part(let part):
      range = part
      status = 206
      headers["content-range"] = "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(size)"
    case .unsatisfiable:
      headers["content-range"] = "bytes */\(size)"
      headers[WebServiceName.contentType] = "text/plain; charset=UTF-8"
      return StreamedResponse(
        WebServiceResponse(
          status: 416,
          headers: headers,
          body: Data("the asset has \(size) bytes\n".utf8)
        )
      )
    }
    return StreamedResponse(
      status: status,
      headers: headers,
      body: .stream(Int64(range.count)) { [store, traffic] sink in
        guard !range.isEmpty else { return }
        try await store.read(place, range) { data in
          try await sink(data)
          traffic.sent(data.count)
        }
      }
    )
  }
}
