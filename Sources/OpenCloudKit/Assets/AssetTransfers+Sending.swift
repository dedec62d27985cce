import CloudKitWebServices
import Effects
import Foundation

/// Uploads the files of records before the records are saved.
extension AssetTransfers {
  /// Uploads the files that the service does not have from an earlier save.
  ///
  /// A file that can't be read, changed meanwhile or is refused is an error of its record; an atomic
  /// modification then sends no further files. Throws errors that say nothing about a single file; the
  /// files that were stored are kept for the next save.
  func send(
    _ uploads: [Upload],
    zone: CKRecordZone.ID,
    atomic: Bool
  ) async throws(CKError) -> UploadedFiles {
    var files = UploadedFiles()
    var waiting: [(index: Int, size: Int64)] = []
    for (index, upload) in uploads.enumerated() {
      do throws(CKError) {
        waiting.append((index, try Self.size(of: upload)))
      } catch {
        files.fail(upload, error)
      }
    }
    guard !atomic || files.errors.isEmpty else { return files }
    waiting.removeAll { index, size in
      guard let (file, uploaded) = takeKept(uploads[index], size: size) else { return false }
      files.add(file, of: uploads[index], at: index, uploaded: uploaded)
      files.reusing.insert(uploads[index].recordID)
      return true
    }
    let meter = TransferMeter(waiting.map { (uploads[$0.index].recordID, $0.size) })
    do throws(CKError) {
      var start = 0
      while start < waiting.count, !atomic || files.errors.isEmpty {
        let slice = Array(waiting[start..<min(start + Self.tokensPerRequest, waiting.count)])
        start += slice.count
        try await send(uploads, slice, zone: zone, meter, &files)
      }
    } catch {
      keep(uploads, files)
      throw error
    }
    return files
  }

  private func send(
    _ uploads: [Upload],
    _ slice: [(index: Int, size: Int64)],
    zone: CKRecordZone.ID,
    _ meter: TransferMeter?,
    _ files: inout UploadedFiles
  ) async throws(CKError) {
    let urls = try await uploadURLs(for: slice.map { uploads[$0.index] }, zone: zone)
    let results = await mapConcurrently(
      Array(zip(slice, urls)),
      limit: Self.concurrentTransfers
    ) { file, url in
      await self.result { () async throws(CKError) in
        try await self.send(uploads[file.index], size: file.size, to: url.get()) { bytes in
          meter?.note(file.index, of: uploads[file.index].recordID, bytes: bytes)
        }
      }
    }
    var failure: CKError?
    for (file, result) in zip(slice, results) {
      switch result {
      case .success(let (stored, isKeepable)):
        files.add(
          stored,
          of: uploads[file.index],
          at: file.index,
          uploaded: isKeepable ? time : nil
        )
      case .failure(let error) where Self.concernsAll(error): failure = failure ?? error
      case .failure(let error): files.fail(uploads[file.index], error)
      }
    }
    if let failure { throw failure }
  }

  /// Whether an error of an upload says nothing about the file.
  private static func concernsAll(_ error: CKError) -> Bool {
    error.isTransient || error.isInconclusive || error.code == .operationCancelled
      || error.code == .notAuthenticated
  }

  // MARK: Uploads of records that were not saved

  /// Keeps the files of the records that were not saved; without results, all files.
  ///
  /// A file that the service does not have any more is discarded.
  func keep(
    _ uploads: [Upload],
    _ files: UploadedFiles,
    results: [CKRecord.ID: CKError?]? = nil
  ) {
    for (index, upload) in uploads.enumerated() {
      if let results, results[upload.recordID] == .some(nil) {
        client.keptUploads.discard(at: place(of: upload))
        continue
      }
      if let error = results?[upload.recordID] ?? nil, error.code == .assetNotAvailable { continue }
      guard let (file, uploaded) = files.keepable[index] else { continue }
      client.keptUploads.keep(
        file,
        at: place(of: upload),
        account: client.account.signIn,
        time: uploaded
      )
    }
  }

  private func takeKept(
    _ upload: Upload,
    size: Int64
  ) -> (file: CKAsset.StoredFile, time: KeptUploads.Time)? {
    client.keptUploads.take(
      at: place(of: upload),
      size: size,
      account: client.account.signIn,
      time: time
    ) {
      // A file that can't be read is an error of its upload.
      try? AssetDigest(of: upload.fileURL).checksum
    }
  }

  private func place(of upload: Upload) -> KeptUploads.Place {
    KeptUploads.Place(
      scope: scope,
      recordID: upload.recordID,
      recordType: upload.recordType,
      fieldName: upload.fieldName
    )
  }

  private var time: KeptUploads.Time {
    KeptUploads.Time(uptime: client.effects.clock.uptime, date: client.effects.now)
  }

  // MARK: Upload requests

  /// The URL for each upload, or the error of its record.
  private func uploadURLs(
    for uploads: [Upload],
    zone: CKRecordZone.ID
  ) async throws(CKError) -> [Result<String, CKError>] {
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
        inconclusive: "The service gave \(reply.tokens.count) places for \(uploads.count) files."
      )
    }
    return reply.tokens.map { token in
      switch token {
      case .success(let token): .success(token.url)
      case .failure(let error): .failure(CKError(error, mapping: mapping, zone: zone))
      }
    }
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

  /// Uploads a file; returns it with whether a later save can use it.
  private func send(
    _ upload: Upload,
    size: Int64,
    to url: String,
    progress: @escaping @Sendable (Int64) -> Void
  ) async throws(CKError) -> (file: CKAsset.StoredFile, isKeepable: Bool) {
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
      return (stored, file.receipt != nil && Self.hasOwnChecksum(reply))
    } catch let error as CKError {
      throw error
    } catch {
      throw CKError(inconclusive: "The reply to an upload can't be read.", underlying: error)
    }
  }
}
