import CloudKitServer
import CloudKitServerHTTP
import Foundation

/// The address of a backup in a bucket, `s3://BUCKET/PREFIX/NAME`, or of the place of several.
struct BucketAddress: Hashable {
  var bucket: String
  /// The parts between the slashes.
  var parts: [String]

  /// Nil for the path of a folder.
  init?(_ text: String) {
    guard text.hasPrefix("s3://") else { return nil }
    let all = text.dropFirst("s3://".count)
      .split(separator: "/", omittingEmptySubsequences: false).map(String.init)
    // Empty where a variable of a script is: refused, and not taken for a folder.
    bucket = all.first ?? ""
    parts = all.dropFirst().filter { !$0.isEmpty }
  }

  var text: String { (["s3:/", bucket] + parts).joined(separator: "/") }

  /// The last part, and the address without it.
  func split() throws -> (place: BucketAddress, name: String) {
    guard let name = parts.last else {
      throw BackupError(description: "Name the backup in the bucket: \(text)/NAME.")
    }
    var place = self
    place.parts.removeLast()
    return (place, name)
  }

  func appending(_ name: String) -> BucketAddress {
    var address = self
    address.parts.append(name)
    return address
  }
}

extension ServerConfiguration {
  /// The backups at an address, with the endpoint and the keys of the bucket for assets.
  func backups(at place: BucketAddress) throws -> S3Backups {
    guard !place.bucket.isEmpty else {
      throw CommandFailure(
        "BAD_ADDRESS",
        what: "\(place.text) is no place for backups",
        why: "it names no bucket",
        next: "give an address such as s3://BUCKET/PREFIX",
        exit: ExitCodes.usage
      )
    }
    guard let s3 else {
      throw CommandFailure(
        "BAD_CONFIGURATION",
        what: "the bucket \(place.bucket) cannot be reached",
        why: "the configuration has no s3, whose endpoint and keys are used for backups too",
        next: "name the configuration with --config, and for a restore with --bucket-config"
      )
    }
    if s3.isPlainToAnotherMachine, s3.allowPlainHTTP != true {
      throw CommandFailure(
        "BAD_CONFIGURATION",
        what: "the bucket \(place.bucket) is not used",
        why:
          "s3.endpoint is \(s3.endpoint), another machine without TLS, and a backup holds the keys",
        next: "use https:, or set s3.allowPlainHTTP in a network of your own"
      )
    }
    guard !s3.mayHaveFiles(at: place) else {
      throw CommandFailure(
        "BAD_CONFIGURATION",
        what: "\(place.text) is no place for backups",
        why: "the server's files are there: it removes what no record uses",
        next:
          "use another bucket, or a folder with a name, such as s3://\(place.bucket)/\(s3.prefix)backups"
      )
    }
    return try S3Backups(
      S3AssetStore.Settings(
        endpoint: s3.endpoint,
        bucket: place.bucket,
        region: s3.region,
        accessKey: s3.accessKey,
        secretKey: s3.secretKey,
        prefix: place.parts.map { "\($0)/" }.joined()
      )
    )
  }
}

extension ServerConfiguration.S3Settings {
  /// Whether the folders of files, which have numbers for names, may be below an address.
  func mayHaveFiles(at place: BucketAddress) -> Bool {
    let path = place.parts.map { "\($0)/" }.joined()
    guard place.bucket == bucket, path.hasPrefix(prefix) || prefix.hasPrefix(path) else {
      return false
    }
    guard let first = path.dropFirst(prefix.count).split(separator: "/").first else { return true }
    return Int64(first) != nil
  }
}

/// A backup by the path of its folder, or by its address in a bucket.
struct BackupSource {
  private let place: String
  private let config: String?

  init(_ place: String, config: String?) {
    self.place = place
    self.config = config
  }

  /// Throws if there is no backup; downloads nothing but the manifest.
  func check() async throws {
    guard let address = BucketAddress(place) else {
      _ = try BackupFolder(URL(fileURLWithPath: place)).manifest()
      return
    }
    let (parent, name) = try address.split()
    let backups = try ConfigurationSource(file: config).load().backups(at: parent)
    _ = try await backups.readManifest(of: name)
  }

  /// Runs the body with the backup's folder: its own, or a downloaded copy.
  func open<Result>(_ body: (BackupFolder) async throws -> Result) async throws -> Result {
    guard let address = BucketAddress(place) else {
      return try await body(BackupFolder(URL(fileURLWithPath: place)))
    }
    let (parent, name) = try address.split()
    let backups = try ConfigurationSource(file: config).load().backups(at: parent)
    return try await TemporaryFolder.with(.backup) { folder in
      try await backups.download(name, to: folder)
      return try await body(BackupFolder(folder))
    }
  }
}
