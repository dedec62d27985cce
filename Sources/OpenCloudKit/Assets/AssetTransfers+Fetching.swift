import CloudKitWebServices
import Effects
import Foundation

/// Downloads the files of fetched records.
extension AssetTransfers {
  /// Fetches the files of the records into the temporary folder.
  ///
  /// Returns an error for each record of which a file could not be fetched. Throws if the fetch was cancelled:
  /// a caller that kept a new change token, and no record, would not fetch the record again.
  func fetch(filesOf records: [CKRecord]) async throws(CKError) -> [CKRecord.ID: CKError] {
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
      guard case .failure(let error) = result else { continue }
      if error.code == .operationCancelled {
        TemporaryAssets.discard(filesOf: records)
        throw error
      }
      errors[recordID] = error
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
    do throws(CKError) {
      try await client.repeating { () async throws(CKError) in
        try await fetch(path, to: place, file, of: recordID, progress: progress)
      }
    } catch {
      // Without an asset object nothing else would remove a partial file.
      try? FileManager.default.removeItem(at: place)
      throw error
    }
    asset.adopt(fileURL: place)
  }

  /// Downloads a file, or the part of it that is missing.
  private func fetch(
    _ path: String,
    to place: URL,
    _ file: CKAsset.StoredFile,
    of recordID: CKRecord.ID,
    progress: @escaping @Sendable (Int64) -> Void
  ) async throws(CKError) {
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
}
