import CloudKitWebServices
import Effects
import Foundation

/// Asset endpoints and the capability URLs that they return.
package final class AssetService: Sendable {
  let store: any AssetStore
  let storage: any Storage
  let writer: StorageWriter
  let quotas: DatabaseQuotas
  let throttle: RequestThrottle
  private let reads: BoundedReads
  let limits: ServiceLimits
  let effects: Effects
  let uploads = UploadLedger()
  let traffic = AssetTraffic()
  private let databases: DatabaseLookup
  let signer: Signer
  private let address: ServerAddress
  /// The origin of downloads; nil: the server's address.
  private let downloadURL: String?

  init(
    store: any AssetStore,
    storage: any Storage,
    writer: StorageWriter,
    databases: DatabaseLookup,
    quotas: DatabaseQuotas,
    throttle: RequestThrottle,
    reads: BoundedReads,
    signer: Signer,
    address: ServerAddress,
    downloadURL: String?,
    limits: ServiceLimits,
    effects: Effects
  ) {
    self.store = store
    self.storage = storage
    self.writer = writer
    self.databases = databases
    self.quotas = quotas
    self.throttle = throttle
    self.reads = reads
    self.signer = signer
    self.address = address
    self.downloadURL = downloadURL
    self.limits = limits
    self.effects = effects
  }

  /// Milliseconds since 1970.
  var now: Int64 { effects.now.wireMilliseconds }

  func uploadURLs(_ request: UploadTokensRequest, _ context: RequestContext) async throws -> Data {
    let principal = try context.user()
    let user = principal.userRecordName
    guard request.tokens.count <= limits.itemsPerRequest else {
      throw ErrorDictionary(
        .badRequest,
        "more than \(limits.itemsPerRequest) tokens",
        extension: ErrorExtension(code: .limitExceeded)
      )
    }
    let (id, shared) = try await reads.run(for: context) { [self] control in
      try uploadTarget(request.zoneID, context, control)
    }
    try await quotas.check(context, id)
    let credential = IssuingCredential(context)
    let tokens = try request.tokens.map { token in
      let permit = UploadPermit(
        id: effects.randomness.bytes(16).hexadecimal,
        partition: id,
        scope: context.scope,
        user: user,
        expires: now + Int64(limits.uploadURLLifetime * 1000),
        credential: credential,
        account: principal.account,
        shared: shared
      )
      return UploadToken(
        recordName: token.recordName ?? effects.uuid().uuidString,
        fieldName: token.fieldName,
        url: "\(assetURL)/upload/\(try signer.seal(permit, for: .upload))"
      )
    }
    return try WireCoding.encode(UploadTokensResponse(tokens: tokens.map { .success($0) }))
  }

  func rereference(
    _ request: RereferenceAssetsRequest,
    _ context: RequestContext
  ) async throws -> Data {
    _ = try context.user()
    guard request.assets.count <= limits.itemsPerRequest else {
      throw ErrorDictionary(.badRequest, "more than \(limits.itemsPerRequest) assets")
    }
    return try await reads.run(for: context) { [self] control in
      try rereferenced(request, context, control)
    }
  }

  private func rereferenced(
    _ request: RereferenceAssetsRequest,
    _ context: RequestContext,
    _ control: ReadControl
  ) throws -> Data {
    let zone = request.zoneID ?? .defaultZone
    let (id, number, found) = try storage.read(control) { snapshot in
      let database = try databases.target(of: [zone], context, snapshot)
      let number = try ZoneDirectory(database, context).number(of: zone)
      let found = try snapshot.records(
        in: database.id,
        keys: request.assets.map { RecordKey(zone: number, name: $0.recordName) }
      ).filter { database.sees($0.value) }
      return (database.id, number, found)
    }
    let results = try request.assets.map { location -> ItemResult<AssetValue> in
      let key = RecordKey(zone: number, name: location.recordName)
      guard let record = found[key], !record.isDeleted, storage.canRead(record, in: id, context)
      else {
        return .failure(
          ErrorDictionary(.notFound, "Record not found", recordName: location.recordName)
        )
      }
      let value = try record.decodedFields()[location.fieldName]?.content
      guard let stored = value?.assets.first, let receipt = try receipt(id, for: stored) else {
        return .failure(
          ErrorDictionary(
            .badRequest,
            "'\(location.fieldName)' holds no asset",
            recordName: location.recordName
          )
        )
      }
      var asset = stored.withoutPlace
      asset.receipt = receipt
      return .success(asset)
    }
    return try WireCoding.encode(RereferenceAssetsResponse(assets: results))
  }

  /// Files are stored in the partition of their records: that of the zone's owner.
  private func uploadTarget(
    _ zone: ZoneID?,
    _ context: RequestContext,
    _ control: ReadControl
  ) throws -> (PartitionID, SharedUpload?) {
    let zone = zone ?? .defaultZone
    return try storage.read(control) { snapshot in
      let database = try databases.target(of: [zone], context, snapshot)
      let number = try ZoneDirectory(database, context).number(of: zone)
      // In another owner's database the shares determine the write permission.
      guard case .participant(let view) = database.access.reader(of: number) else {
        return (database.id, nil)
      }
      guard view.permissions.values.contains(where: \.canWrite) else {
        throw ErrorDictionary(.accessDenied, "WRITE operation not permitted", zoneID: zone)
      }
      return (database.id, SharedUpload(number, view))
    }
  }

  /// The receipt for the asset's bytes; nil for a value without a file.
  func receipt(_ id: PartitionID, for asset: AssetValue) throws -> String? {
    guard let file = asset.fileName, let checksum = asset.fileChecksum else { return nil }
    return try signer.seal(
      UploadReceipt(
        partition: id,
        file: file,
        checksum: checksum,
        size: asset.size ?? 0,
        expires: now + Int64(limits.receiptLifetime * 1000),
        incarnation: storage.incarnation
      ),
      for: .receipt
    )
  }

  /// The asset in a reply: without its location, with a URL that is valid for a limited time, and
  /// no longer than the credential of the caller.
  func downloadable(
    _ asset: AssetValue,
    _ id: PartitionID,
    for credential: IssuingCredential,
    from source: SharedSource? = nil
  ) throws -> AssetValue {
    var value = asset.withoutPlace
    guard let file = asset.fileName else { return value }
    let permit = DownloadPermit(
      partition: id,
      file: file,
      expires: now + Int64(limits.downloadURLLifetime * 1000),
      credential: credential,
      source: source
    )
    value.downloadURL = "\(assetURL)/download/\(try signer.seal(permit, for: .download))"
    return value
  }

  /// The base URL of downloads: an origin of their own, if the configuration has one.
  private var assetURL: String {
    (downloadURL ?? address.url) + Route.Section.assets.path
  }
}
