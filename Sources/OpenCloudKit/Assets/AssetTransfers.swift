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

  /// A file that a field holds.
  struct Upload: Sendable {
    var asset: CKAsset
    var fileURL: URL
    var recordID: CKRecord.ID
    var recordType: String
    var fieldName: String
  }

  /// Whether a file has the content that its checksum names.
  ///
  /// The client compares only if the response says that the checksum has Watershed's form: Apple's
  /// checksums have the same form, and are computed differently.
  static func isWhole(
    _ file: URL,
    _ checksum: String,
    _ response: WebServiceResponse
  ) -> Bool {
    guard hasOwnChecksum(response), let due = AssetDigest(checksum: checksum) else { return true }
    return (try? AssetDigest(of: file)) == due
  }

  /// Whether a response says that its checksums have Watershed's form.
  static func hasOwnChecksum(_ response: WebServiceResponse) -> Bool {
    response.headers[WebServiceName.checksumForm] == WebServiceName.checksumFormValue
  }

  /// The size of a file in bytes; zero if the file does not exist.
  static func size(of file: URL) -> Int64 {
    let attributes = try? FileManager.default.attributesOfItem(atPath: file.path)
    return (attributes?[.size] as? NSNumber)?.int64Value ?? 0
  }

  func result<Output>(
    _ body: () async throws(CKError) -> Output
  ) async -> Result<Output, CKError> {
    do throws(CKError) {
      return .success(try await body())
    } catch {
      return .failure(error)
    }
  }
}
