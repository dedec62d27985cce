import CloudKitWebServices
import Crypto
import Foundation

/// Asset endpoints and the capability URLs they hand out.
extension CloudKitService {
  func uploadAssets(_ request: UploadTokensRequest, _ context: RequestContext) async throws -> Data
  {
    _ = try context.user()
    guard request.tokens.count <= limits.itemsPerRequest else {
      throw ErrorDictionary(
        .badRequest,
        "more than \(limits.itemsPerRequest) tokens",
        extension: ErrorExtension(code: .limitExceeded)
      )
    }
    let permit = UploadPermit(
      partition: try uploadPartition(request.zoneID, context),
      expires: now + Int64(limits.uploadURLLifetime * 1000)
    )
    let tokens = try request.tokens.map { token in
      UploadToken(
        recordName: token.recordName ?? effects.uuid().uuidString,
        fieldName: token.fieldName,
        url: "\(baseURL)/assets/upload/\(try signer.seal(permit, for: .upload))"
      )
    }
    return try WireCoding.encode(UploadTokensResponse(tokens: tokens.map { .success($0) }))
  }

  func rereferenceAssets(
    _ request: RereferenceAssetsRequest,
    _ context: RequestContext
  ) async throws -> Data {
    _ = try context.user()
    guard request.assets.count <= limits.itemsPerRequest else {
      throw ErrorDictionary(.badRequest, "more than \(limits.itemsPerRequest) assets")
    }
    let zone = request.zoneID ?? .defaultZone
    let (id, number, found) = try storage.read { snapshot in
      let database = try target(of: [zone], context, snapshot)
      let number = try ZoneDirectory(database, context).number(of: zone)
      let found = try snapshot.records(
        in: database.id,
        keys: request.assets.map { RecordKey(zone: number, name: $0.recordName) }
      ).filter { database.sees($0.value) }
      return (database.id, number, found)
    }
    let results = try request.assets.map { location -> ItemResult<AssetValue> in
      let key = RecordKey(zone: number, name: location.recordName)
      guard let record = found[key], !record.isDeleted, canRead(record, in: id, context) else {
        return .failure(
          ErrorDictionary(.notFound, "Record not found", recordName: location.recordName)
        )
      }
      let value = try record.decodedFields()[location.fieldName]?.content
      guard case .asset(var asset)? = value, let checksum = asset.fileChecksum else {
        return .failure(
          ErrorDictionary(
            .badRequest,
            "'\(location.fieldName)' holds no asset",
            recordName: location.recordName
          )
        )
      }
      asset.receipt = try receipt(id, checksum: checksum, size: asset.size ?? 0)
      return .success(asset)
    }
    return try WireCoding.encode(RereferenceAssetsResponse(assets: results))
  }

  /// Files lie where their records do: with the owner of the zone.
  private func uploadPartition(_ zone: ZoneID?, _ context: RequestContext) throws -> PartitionID {
    guard context.scope == .shared else { return try partition(context) }
    let zone = zone ?? .defaultZone
    return try storage.read { snapshot in
      let database = try target(of: [zone], context, snapshot)
      let number = try ZoneDirectory(database, context).number(of: zone)
      guard database.views?[number]?.permissions.values.contains(where: \.canWrite) == true else {
        throw ErrorDictionary(.accessDenied, "WRITE operation not permitted", zoneID: zone)
      }
      return database.id
    }
  }

  private func receipt(_ id: PartitionID, checksum: String, size: Int64) throws -> String {
    try signer.seal(
      UploadReceipt(
        partition: id,
        checksum: checksum,
        size: size,
        expires: now + Int64(limits.receiptLifetime * 1000)
      ),
      for: .receipt
    )
  }

  func downloadURL(_ id: PartitionID, _ digest: AssetDigest) throws -> String {
    let permit = DownloadPermit(
      partition: id,
      file: digest.fileName,
      expires: now + Int64(limits.downloadURLLifetime * 1000)
    )
    return "\(baseURL)/assets/download/\(try signer.seal(permit, for: .download))"
  }

  // MARK: Capability URLs

  func respondToAsset(
    _ request: WebServiceRequest,
    _ target: RequestTarget
  ) async throws -> WebServiceResponse {
    guard target.parts.count >= 3 else {
      throw ErrorDictionary(.notFound, "could not find handler for endpoint")
    }
    switch (target.parts[1], request.method) {
    case ("upload", "POST"), ("upload", "PUT"): return try upload(request.body, target.parts[2])
    case ("download", "GET"): return try download(target.parts[2])
    default: throw ErrorDictionary(.notFound, "could not find handler for endpoint")
    }
  }

  private func upload(_ body: Data, _ text: String) throws -> WebServiceResponse {
    guard let permit = signer.open(text, as: UploadPermit.self, for: .upload) else {
      throw ErrorDictionary(.accessDenied, "this is not an upload URL of the server")
    }
    guard permit.expires > now else {
      throw ErrorDictionary(.accessDenied, "the upload URL has expired")
    }
    guard body.count <= limits.assetSize else {
      throw ErrorDictionary(.quotaExceeded, "an asset has at most \(limits.assetSize) bytes")
    }
    let digest = AssetDigest(of: body)
    try assets.write(body, permit.partition, digest.fileName)
    let value = AssetValue(
      fileChecksum: digest.checksum,
      size: Int64(body.count),
      receipt: try receipt(
        permit.partition,
        checksum: digest.checksum,
        size: Int64(body.count)
      ),
      // Apple's service encrypts files and needs both; here they only complete the documented
      // shape, for clients that expect it.
      wrappingKey: Data(SHA256.hash(data: Data(digest.checksum.utf8)).prefix(16))
        .base64EncodedString(),
      referenceChecksum: digest.checksum
    )
    return WebServiceResponse(
      status: 200,
      body: try WireCoding.encode(UploadedFileResponse(singleFile: value))
    )
  }

  private func download(_ text: String) throws -> WebServiceResponse {
    guard let permit = signer.open(text, as: DownloadPermit.self, for: .download) else {
      throw ErrorDictionary(.accessDenied, "this is not a download URL of the server")
    }
    guard permit.expires > now else {
      throw ErrorDictionary(.accessDenied, "the download URL has expired")
    }
    guard let data = try assets.read(permit.partition, permit.file) else {
      throw ErrorDictionary(.notFound, "the asset is no longer there")
    }
    return WebServiceResponse(
      status: 200,
      headers: [
        WebServiceName.contentType: "application/octet-stream",
        "cache-control": "private, max-age=3600",
        "x-content-type-options": "nosniff",
      ],
      body: data
    )
  }
}
