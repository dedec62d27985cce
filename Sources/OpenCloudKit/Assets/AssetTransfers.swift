import CloudKitWebServices
import Foundation

/// Uploads the files of records before the records are saved, and downloads the files of fetched
/// records.
struct AssetTransfers: Sendable {
  let client: ServiceClient
  let scope: CKDatabase.Scope

  /// The number of concurrent file transfers: enough to hide latency, few enough to leave the
  /// service and the network to other requests.
  static let concurrentTransfers = 4
  /// The most upload tokens that one `assets/upload` request returns.
  static let tokensPerRequest = 200

  // MARK: Sending

  /// A file that a field holds.
  struct Upload: Sendable {
    var asset: CKAsset
    var fileURL: URL
    var recordID: CKRecord.ID
    var recordType: String
    var fieldName: String
  }

  /// Uploads the files and returns the stored file of each asset, by the asset's identity.
  func send(
    _ uploads: [Upload],
    zone: CKRecordZone.ID
  ) async throws(CKError) -> [ObjectIdentifier: CKAsset.StoredFile] {
    var stored: [ObjectIdentifier: CKAsset.StoredFile] = [:]
    let sizes = try uploads.map { upload throws(CKError) in try Self.size(of: upload) }
    let meter = TransferMeter(zip(uploads, sizes).map { ($0.recordID, $1) })
    var start = 0
    while start < uploads.count {
      let indices = Array(start..<min(start + Self.tokensPerRequest, uploads.count))
      start += indices.count
      let slice = indices.map { uploads[$0] }
      let urls = try await uploadURLs(for: slice, zone: zone)
      let results = await mapConcurrently(
        Array(zip(indices, urls)),
        limit: Self.concurrentTransfers
      ) { index, url in
        await self.result { () async throws(CKError) in
          try await self.send(uploads[index], size: sizes[index], to: url) { bytes in
            meter?.note(index, of: uploads[index].recordID, bytes: bytes)
          }
        }
      }
      for (upload, result) in zip(slice, results) {
        stored[ObjectIdentifier(upload.asset)] = try result.get()
      }
    }
    return stored
  }

  private func uploadURLs(
    for uploads: [Upload],
    zone: CKRecordZone.ID
  ) async throws(CKError) -> [String] {
    let mapping = WireMapping(scope: scope, effects: client.effects)
    let reply = try await client.call(
      .uploadAssets,
      scope: scope,
      body: UploadTokensRequest(
        tokens: uploads.map {
          UploadTokenField(
            fieldName: $0.fieldName,
            recordName: $0.recordID.recordName,
            recordType: $0.recordType
          )
        },
        zoneID: mapping.wire(zone)
      ),
      repeatable: true,
      zone: zone,
      as: UploadTokensResponse.self
    )
    guard reply.tokens.count == uploads.count else {
      throw CKError(
        .internalError,
        "The service gave \(reply.tokens.count) places for \(uploads.count) files."
      )
    }
    var urls: [String] = []
    for token in reply.tokens {
      switch token {
      case .success(let token): urls.append(token.url)
      case .failure(let error): throw CKError(error, mapping: mapping, zone: zone)
      }
    }
    return urls
  }

  /// The size of a file in bytes; throws `assetFileNotFound` if it can't be read.
  private static func size(of upload: Upload) throws(CKError) -> Int64 {
    do {
      let handle = try FileHandle(forReadingFrom: upload.fileURL)
      defer { try? handle.close() }
      return Int64(try handle.seekToEnd())
    } catch {
      throw CKError(
        .assetFileNotFound,
        "The file \(upload.fileURL.path) of the asset \(upload.fieldName) can't be read.",
        underlying: error
      )
    }
  }

  private func send(
    _ upload: Upload,
    size: Int64,
    to url: String,
    progress: @escaping @Sendable (Int64) -> Void
  ) async throws(CKError) -> CKAsset.StoredFile {
    let request = WebServiceRequest(
      method: "POST",
      path: url,
      headers: [WebServiceName.contentType: "application/octet-stream"]
    )
    let reply = try await client.repeating { () async throws(CKError) -> WebServiceResponse in
      let response = try await client.upload(
        request,
        from: upload.fileURL,
        size: size,
        progress: progress
      )
      guard (200..<300).contains(response.status) else {
        throw client.error(of: response, scope: scope, zone: upload.recordID.zoneID)
      }
      return response
    }
    do {
      let file = try WireCoding.decode(UploadedFileResponse.self, from: reply.body).singleFile
      guard Self.isWhole(upload.fileURL, file.fileChecksum ?? "", reply) else {
        throw CKError(
          .assetFileModified,
          "The service has other bytes than the file \(upload.fileURL.path): the file changed while it was "
            + "uploaded, or the connection changed it.",
          remedy: "Save the record again."
        )
      }
      var stored = CKAsset.StoredFile(
        fileChecksum: file.fileChecksum ?? "",
        size: file.size ?? size
      )
      stored.receipt = file.receipt
      stored.wrappingKey = file.wrappingKey
      stored.referenceChecksum = file.referenceChecksum
      return stored
    } catch let error as CKError {
      throw error
    } catch {
      throw CKError(.internalError, "The reply to an upload can't be read.", underlying: error)
    }
  }

  // MARK: Fetching

  /// Fetches the files of the records into the temporary folder.
  ///
  /// Returns an error for each record of which a file could not be fetched.
  func fetch(filesOf records: [CKRecord]) async -> [CKRecord.ID: CKError] {
    var wanted: [(CKRecord.ID, CKAsset)] = []
    for record in records {
      for (_, field) in record.fields.sorted(by: { $0.key < $1.key }) {
        for asset in field.value.assets
        where asset.fileURL == nil && asset.storedFile?.downloadURL != nil {
          wanted.append((record.recordID, asset))
        }
      }
    }
    guard !wanted.isEmpty else { return [:] }
    let meter = TransferMeter(wanted.map { ($0.0, $0.1.storedFile?.size ?? 0) })
    let results = await mapConcurrently(
      Array(wanted.enumerated()),
      limit: Self.concurrentTransfers
    ) { index, file in
      let (recordID, asset) = file
      return await self.result { () async throws(CKError) in
        try await self.fetch(asset, of: recordID) { bytes in
          meter?.note(index, of: recordID, bytes: bytes)
        }
      }
    }
    var errors: [CKRecord.ID: CKError] = [:]
    for ((recordID, _), result) in zip(wanted, results) {
      if case .failure(let error) = result { errors[recordID] = error }
    }
    return errors
  }

  /// Downloads a file.
  ///
  /// A retry continues an interrupted download with a range request.
  private func fetch(
    _ asset: CKAsset,
    of recordID: CKRecord.ID,
    progress: @escaping @Sendable (Int64) -> Void
  ) async throws(CKError) {
    guard let file = asset.storedFile, let url = file.downloadURL else { return }
    let place = TemporaryAssets.place(named: asset.uuid)
    // The placeholder stands for a file name that a browser would save under.
    let path = url.replacingOccurrences(of: "${f}", with: "asset")
    try await client.repeating { () async throws(CKError) in
      var request = WebServiceRequest(method: "GET", path: path)
      let known = Self.size(of: place)
      if known > 0, known < file.size { request.headers["range"] = "bytes=\(known)-" }
      let response = try await client.download(request, to: place, progress: progress)
      guard (200..<300).contains(response.status) else {
        // Status 416: the partial file does not match the stored file. The retry downloads it from
        // the start.
        if response.status == 416 {
          try? FileManager.default.removeItem(at: place)
          throw CKError(.networkFailure, "The interrupted download of a file can't be resumed.")
        }
        let error = client.error(of: response, scope: scope, zone: recordID.zoneID)
        guard error.code == .unknownItem else { throw error }
        throw CKError(
          .assetNotAvailable,
          "A file of the record \(recordID.recordName) is not on the server.",
          underlying: error
        )
      }
      let size = Self.size(of: place)
      guard size == file.size || file.size == 0 else {
        if size > file.size { try? FileManager.default.removeItem(at: place) }
        throw CKError(
          .networkFailure,
          "Received \(size) of \(file.size) bytes of a file of the record \(recordID.recordName)."
        )
      }
      guard
        client.effects.has(.trustFetchedFiles)
          || Self.isWhole(place, file.fileChecksum, response)
      else {
        // A resumed download would keep the damaged part.
        try? FileManager.default.removeItem(at: place)
        throw CKError(
          .networkFailure,
          "A file of the record \(recordID.recordName) came with other bytes than were saved."
        )
      }
    }
    asset.adopt(fileURL: place)
  }

  /// Whether a file has the content that its checksum names.
  ///
  /// The client compares only if the response says that the checksum has Watershed's form: Apple's
  /// checksums have the same form, and are computed differently.
  private static func isWhole(
    _ file: URL,
    _ checksum: String,
    _ response: WebServiceResponse
  ) -> Bool {
    guard response.headers[WebServiceName.checksumForm] == WebServiceName.checksumFormValue,
      let due = AssetDigest(checksum: checksum)
    else { return true }
    return (try? AssetDigest(of: file)) == due
  }

  /// The size of a file in bytes; zero if the file does not exist.
  private static func size(of file: URL) -> Int64 {
    let attributes = try? FileManager.default.attributesOfItem(atPath: file.path)
    return (attributes?[.size] as? NSNumber)?.int64Value ?? 0
  }

  private func result<Output>(
    _ body: () async throws(CKError) -> Output
  ) async -> Result<Output, CKError> {
    do throws(CKError) {
      return .success(try await body())
    } catch {
      return .failure(error)
    }
  }
}
