import CloudKitWebServices
import Foundation

/// Sends the files of records ahead of them, and fetches the files of fetched records.
struct AssetTransfers: Sendable {
  let client: ServiceClient
  let scope: CKDatabase.Scope

  /// How many files travel at a time: enough to hide the waiting, few enough to leave the service
  /// and the network to others.
  static let concurrentTransfers = 4
  /// The most tokens that one `assets/upload` gives out.
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

  /// Uploads the files and returns how the service knows them, by the identity of their assets.
  func send(
    _ uploads: [Upload],
    zone: CKRecordZone.ID
  ) async throws(CKError) -> [ObjectIdentifier: CKAsset.StoredFile] {
    var stored: [ObjectIdentifier: CKAsset.StoredFile] = [:]
    var start = 0
    while start < uploads.count {
      let slice = Array(uploads[start..<min(start + Self.tokensPerRequest, uploads.count)])
      start += slice.count
      let urls = try await uploadURLs(for: slice, zone: zone)
      let results = await mapConcurrently(
        Array(zip(slice, urls)),
        limit: Self.concurrentTransfers
      ) { upload, url in
        await self.result { () async throws(CKError) in
          try await self.send(upload, to: url)
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

  private func send(_ upload: Upload, to url: String) async throws(CKError) -> CKAsset.StoredFile {
    let data: Data
    do {
      data = try Data(contentsOf: upload.fileURL)
    } catch {
      throw CKError(
        .assetFileNotFound,
        "The file \(upload.fileURL.path) of the asset \(upload.fieldName) can't be read.",
        underlying: error
      )
    }
    let request = WebServiceRequest(
      method: "POST",
      path: url,
      headers: [WebServiceName.contentType: "application/octet-stream"],
      body: data
    )
    let reply = try await client.repeating { () async throws(CKError) -> WebServiceResponse in
      let response = try await client.exchange(request)
      guard (200..<300).contains(response.status) else {
        throw client.error(of: response, scope: scope, zone: upload.recordID.zoneID)
      }
      return response
    }
    do {
      let file = try WireCoding.decode(UploadedFileResponse.self, from: reply.body).singleFile
      var stored = CKAsset.StoredFile(
        fileChecksum: file.fileChecksum ?? "",
        size: file.size ?? Int64(data.count)
      )
      stored.receipt = file.receipt
      stored.wrappingKey = file.wrappingKey
      stored.referenceChecksum = file.referenceChecksum
      return stored
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
    let results = await mapConcurrently(wanted, limit: Self.concurrentTransfers) {
      recordID,
      asset in
      await self.result { () async throws(CKError) in try await self.fetch(asset, of: recordID) }
    }
    var errors: [CKRecord.ID: CKError] = [:]
    for ((recordID, _), result) in zip(wanted, results) {
      if case .failure(let error) = result { errors[recordID] = error }
    }
    return errors
  }

  private func fetch(_ asset: CKAsset, of recordID: CKRecord.ID) async throws(CKError) {
    guard let url = asset.storedFile?.downloadURL else { return }
    // The placeholder stands for a file name that a browser would save under.
    let path = url.replacingOccurrences(of: "${f}", with: "asset")
    let request = WebServiceRequest(method: "GET", path: path)
    let response = try await client.repeating { () async throws(CKError) -> WebServiceResponse in
      let response = try await client.exchange(request)
      guard (200..<300).contains(response.status) else {
        let error = client.error(of: response, scope: scope, zone: recordID.zoneID)
        guard error.code == .unknownItem else { throw error }
        throw CKError(
          .assetNotAvailable,
          "A file of the record \(recordID.recordName) is not on the server.",
          underlying: error
        )
      }
      return response
    }
    do {
      asset.adopt(fileURL: try TemporaryAssets.store(response.body, named: asset.uuid))
    } catch {
      throw CKError(
        .assetNotAvailable,
        "A file of the record \(recordID.recordName) can't be written.",
        underlying: error
      )
    }
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
