import AsyncHTTPClient
import CloudKitServer
import Foundation
import NIOCore
import NIOFoundationCompat
import NIOHTTP1

/// Stores assets in a bucket of any service with the S3 protocol.
///
/// Files are uploaded in parts of eight megabytes, so that one upload needs no more memory than
/// that, and downloaded as they are read.
package struct S3AssetStore: AssetStore {
  /// The bucket and the credentials.
  package struct Settings: Hashable, Sendable {
    /// A URL such as `https://s3.eu-central-1.amazonaws.com`; the bucket is appended to its path.
    package var endpoint: String
    package var bucket: String
    package var region: String
    package var accessKey: String
    package var secretKey: String
    /// The prefix of file names, such as `assets/`.
    package var prefix: String

    package init(
      endpoint: String,
      bucket: String,
      region: String = "us-east-1",
      accessKey: String,
      secretKey: String,
      prefix: String = ""
    ) {
      self.endpoint = endpoint
      self.bucket = bucket
      self.region = region
      self.accessKey = accessKey
      self.secretKey = secretKey
      self.prefix = prefix
    }
  }

  /// An error reply of the service.
  package struct Failure: Error, Hashable, CustomStringConvertible {
    package var status: Int
    package var reason: String

    package var description: String { "the bucket answered \(status): \(reason)" }
  }

  static let partSize = 8 * 1_048_576
  /// The most parts of one object in the protocol, less some: a file may have grown.
  private static let partCount = 9000
  private static let silence = TimeAmount.seconds(60)
  /// The largest response in bytes; a page of a list has a thousand names.
  private static let largestAnswer = 4 * 1_048_576

  let settings: Settings
  private let host: String
  private let signature: S3Signature

  package init(_ settings: Settings) throws {
    guard let parts = URLComponents(string: settings.endpoint), let host = parts.host else {
      throw Failure(status: 0, reason: "\(settings.endpoint) is not an address")
    }
    self.settings = settings
    self.host = parts.port.map { "\(host):\($0)" } ?? host
    signature = S3Signature(
      region: settings.region,
      accessKey: settings.accessKey,
      secretKey: settings.secretKey
    )
  }

  // MARK: Requests

  private func key(_ place: AssetPlace) -> String {
    "\(settings.prefix)\(place.partition.rawValue)/\(place.file)"
  }

  /// Sends one signed request; throws for a status outside 200–299, unless it is expected.
  func send(
    _ method: HTTPMethod,
    key: String = "",
    query: [(String, String)] = [],
    headers: [(String, String)] = [],
    body: Data = Data(),
    expecting expected: Set<Int> = []
  ) async throws -> HTTPClientResponse {
    let bucket = S3Signature.escape(settings.bucket)
    let path = "/\(bucket)" + (key.isEmpty ? "" : "/\(S3Signature.escape(key, keepsSlashes: true))")
    let items = S3Signature.query(query)
    var origin = settings.endpoint
    while origin.hasSuffix("/") { origin.removeLast() }
    var request = HTTPClientRequest(url: origin + path + (items.isEmpty ? "" : "?\(items)"))
    request.method = method
    let signed = signature.headers(
      method: method.rawValue,
      host: host,
      path: path,
      query: items,
      payload: body,
      at: Date()
    )
    for (name, value) in signed + headers { request.headers.add(name: name, value: value) }
    if !body.isEmpty || method == .PUT || method == .POST {
      request.body = .bytes(ByteBuffer(data: body))
    }
    // A minute for each eight megabytes that are sent.
    let parts = max(1, (body.count + Self.partSize - 1) / Self.partSize)
    let response = try await HTTPClient.shared.execute(
      request,
      timeout: .seconds(Self.silence.nanoseconds / 1_000_000_000 * Int64(parts))
    )
    let status = Int(response.status.code)
    guard (200..<300).contains(status) || expected.contains(status) else {
      let text = try await response.body.collect(upTo: Self.largestAnswer)
      let reason = String(buffer: text)
      throw Failure(status: status, reason: XMLValues.first("Code", in: reason) ?? reason)
    }
    return response
  }

  func text(_ response: HTTPClientResponse) async throws -> String {
    String(buffer: try await response.body.collect(upTo: Self.largestAnswer))
  }

  /// Creates the bucket, unless it exists.
  ///
  /// For tests.
  package func createBucket() async throws {
    _ = try await text(try await send(.PUT, expecting: [409]))
  }

  // MARK: Files

  package func begin(_ place: AssetPlace) async throws -> any AssetUpload {
    begin(key: key(place))
  }

  /// Starts to write an object, which exists only after the upload is finished.
  func begin(key: String, partSize: Int = Self.partSize) -> any AssetUpload {
    S3Upload(store: self, key: key, partSize: partSize)
  }

  /// The size of parts by which a file of a size has no more of them than the protocol permits.
  package static func partSize(ofFile size: Int64) -> Int {
    max(partSize, Int((size + Int64(partCount) - 1) / Int64(partCount)))
  }

  package func size(of place: AssetPlace) async throws -> Int64? {
    let response = try await send(.HEAD, key: key(place), expecting: [404])
    guard response.status != .notFound else { return nil }
    return response.headers.first(name: "content-length").flatMap { Int64($0) }
  }

  package func read(
    _ place: AssetPlace,
    _ range: Range<Int64>,
    into sink: @Sendable (Data) async throws -> Void
  ) async throws {
    let response = try await send(
      .GET,
      key: key(place),
      headers: [("range", "bytes=\(range.lowerBound)-\(range.upperBound - 1)")]
    )
    var left = range.upperBound - range.lowerBound
    for try await part in response.body {
      left -= Int64(part.readableBytes)
      try await sink(Data(buffer: part, byteTransferStrategy: .copy))
    }
    guard left == 0 else { throw Failure(status: 200, reason: "the file ended too early") }
  }

  package func remove(_ place: AssetPlace) async throws {
    _ = try await text(try await send(.DELETE, key: key(place), expecting: [404]))
  }

  package func partitions() async throws -> [PartitionID] {
    var found: [PartitionID] = []
    try await list(prefix: settings.prefix, delimiter: "/") { page in
      found += XMLValues.all("Prefix", in: page).compactMap { prefix in
        Int64(prefix.dropFirst(settings.prefix.count).dropLast()).map {
          PartitionID(rawValue: $0)
        }
      }
    }
    return Array(Set(found)).sorted { $0.rawValue < $1.rawValue }
  }

  package func files(in partition: PartitionID) async throws -> [StoredAssetFile] {
    let prefix = "\(settings.prefix)\(partition.rawValue)/"
    var found: [StoredAssetFile] = []
    try await list(prefix: prefix, delimiter: nil) { page in
      found += XMLValues.all("Contents", in: page).compactMap { entry in
        guard let key = XMLValues.first("Key", in: entry), key.hasPrefix(prefix) else { return nil }
        let written = XMLValues.first("LastModified", in: entry).flatMap(Self.date)
        return StoredAssetFile(
          name: String(key.dropFirst(prefix.count)),
          size: XMLValues.first("Size", in: entry).flatMap { Int64($0) } ?? 0,
          written: written ?? .distantPast
        )
      }
    }
    return found
  }

  /// Next to the partitions, whose names are numbers.
  private var identityKey: String { "\(settings.prefix)identity" }

  package func identity() async throws -> String? {
    let response = try await send(.GET, key: identityKey, expecting: [404])
    let answer = try await text(response)
    guard response.status != .notFound else { return nil }
    return answer.trimmingCharacters(in: .whitespacesAndNewlines)
  }

  package func keep(identity: String) async throws {
    // If the service supports the condition, the first of two servers wins, and both read its
    // identity.
    let response = try await send(
      .PUT,
      key: identityKey,
      headers: [("if-none-match", "*")],
      body: Data("\(identity)\n".utf8),
      expecting: [409, 412]
    )
    _ = try await text(response)
  }

  private static func date(_ text: String) -> Date? {
    (try? Date.ISO8601FormatStyle(includingFractionalSeconds: true).parse(text))
      ?? (try? Date.ISO8601FormatStyle().parse(text))
  }

  /// Aborts multipart uploads that were never finished.
  package func removeRemains(before date: Date) async throws {
    try await removeRemains(before: date) { _ in true }
  }

  /// Aborts those to certain keys.
  func removeRemains(before date: Date, to isKey: (String) -> Bool) async throws {
    let answer = try await text(
      try await send(.GET, query: [("uploads", ""), ("prefix", settings.prefix)])
    )
    for upload in XMLValues.all("Upload", in: answer) {
      guard let key = XMLValues.first("Key", in: upload), isKey(key),
        let id = XMLValues.first("UploadId", in: upload),
        let begun = XMLValues.first("Initiated", in: upload).flatMap(Self.date), begun < date
      else { continue }
      _ = try await text(
        try await send(.DELETE, key: key, query: [("uploadId", id)], expecting: [404])
      )
    }
  }

  func list(
    prefix: String,
    delimiter: String?,
    _ body: (String) throws -> Void
  ) async throws {
    var token: String?
    repeat {
      var query = [("list-type", "2"), ("prefix", prefix)]
      if let delimiter { query.append(("delimiter", delimiter)) }
      if let token { query.append(("continuation-token", token)) }
      let page = try await text(try await send(.GET, query: query))
      try body(page)
      token = XMLValues.first("NextContinuationToken", in: page)
    } while token != nil
  }
}

/// The upload of one file.
private final class S3Upload: AssetUpload, @unchecked Sendable {
  // Unchecked: one task uses an upload, one call at a time.
  private let store: S3AssetStore
  private let key: String
  private let partSize: Int
  private var buffer = Data()
  private var uploadID: String?
  private var tags: [String] = []

  init(store: S3AssetStore, key: String, partSize: Int) {
    self.store = store
    self.key = key
    self.partSize = partSize
  }

  func write(_ data: Data) async throws {
    buffer.append(data)
    while buffer.count > partSize {
      let part = Data(buffer.prefix(partSize))
      buffer = Data(buffer.dropFirst(partSize))
      try await send(part)
    }
  }

  private func send(_ part: Data) async throws {
    let id: String
    if let uploadID {
      id = uploadID
    } else {
      let answer = try await store.text(
        try await store.send(.POST, key: key, query: [("uploads", "")])
      )
      guard let made = XMLValues.first("UploadId", in: answer) else {
        throw S3AssetStore.Failure(status: 200, reason: "an upload without an ID")
      }
      id = made
      uploadID = made
    }
    let response = try await store.send(
      .PUT,
      key: key,
      query: [("partNumber", "\(tags.count + 1)"), ("uploadId", id)],
      body: part
    )
    _ = try await store.text(response)
    tags.append(response.headers.first(name: "etag") ?? "")
  }

  func finish() async throws {
    guard let uploadID else {
      _ = try await store.text(try await store.send(.PUT, key: key, body: buffer))
      return
    }
    if !buffer.isEmpty { try await send(buffer) }
    buffer = Data()
    let parts = tags.enumerated().map { index, tag in
      "<Part><PartNumber>\(index + 1)</PartNumber><ETag>\(HTMLPage.escape(tag))</ETag></Part>"
    }
    let body = "<CompleteMultipartUpload>\(parts.joined())</CompleteMultipartUpload>"
    let answer = try await store.text(
      try await store.send(.POST, key: key, query: [("uploadId", uploadID)], body: Data(body.utf8))
    )
    // In the protocol, this request may fail with status 200.
    if let code = XMLValues.first("Code", in: answer) {
      throw S3AssetStore.Failure(status: 200, reason: code)
    }
  }

  func cancel() async {
    buffer = Data()
    guard let uploadID else { return }
    // Parts that are left are removed by the next housekeeping.
    _ = try? await store.send(.DELETE, key: key, query: [("uploadId", uploadID)])
  }
}

/// Parses the few elements of S3's replies that are needed.
enum XMLValues {
  /// The texts of all elements of a name, in order.
  static func all(_ name: String, in text: String) -> [String] {
    var found: [String] = []
    var rest = Substring(text)
    while let open = rest.range(of: "<\(name)>"),
      let close = rest[open.upperBound...].range(of: "</\(name)>")
    {
      found.append(unescape(rest[open.upperBound..<close.lowerBound]))
      rest = rest[close.upperBound...]
    }
    return found
  }

  static func first(_ name: String, in text: String) -> String? { all(name, in: text).first }

  private static func unescape(_ text: Substring) -> String {
    String(text).replacing("&quot;", with: "\"").replacing("&lt;", with: "<")
      .replacing("&gt;", with: ">").replacing("&apos;", with: "'").replacing("&amp;", with: "&")
  }
}
