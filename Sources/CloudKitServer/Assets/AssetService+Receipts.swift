import CloudKitWebServices
import Foundation

extension AssetService {
  /// The asset to store, if it has a valid receipt or the field already has it.
  ///
  /// A receipt from before the data were restored is refused: the file may have been uploaded after
  /// the backup was made. A client that keeps its receipt and saves the field again needs no receipt:
  /// the field has the file.
  func admit(
    _ asset: AssetValue,
    previous: FieldValue?,
    _ id: PartitionID
  ) throws -> AssetValue {
    let failure = ErrorDictionary(
      .badRequest,
      "the asset was not uploaded, or too long ago; upload it again",
      extension: ErrorExtension(code: .assetNotAvailable)
    )
    if let text = asset.receipt,
      let receipt = signer.open(text, as: UploadReceipt.self, for: .receipt),
      receipt.partition == id, receipt.expires > now, AssetPlace.isFileName(receipt.file),
      receipt.incarnation ?? storage.incarnation == storage.incarnation
    {
      guard asset.fileChecksum == nil || asset.fileChecksum == receipt.checksum else {
        throw failure
      }
      return AssetValue(
        fileChecksum: receipt.checksum,
        size: receipt.size,
        blob: receipt.file
      )
    }
    let kept = previous?.content.assets.first { $0.fileChecksum == asset.fileChecksum }
    guard let kept, asset.fileChecksum != nil else { throw failure }
    return kept
  }
}
