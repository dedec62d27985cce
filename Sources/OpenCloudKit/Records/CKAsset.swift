import Effects
import Foundation
import Synchronization

/// A file that belongs to a record and is stored beside it.
///
/// ```swift
/// note["photo"] = CKAsset(fileURL: photoURL)
/// try await database.save(note)
///
/// let fetched = try await database.record(for: note.recordID)
/// let photo = fetched["photo"] as? CKAsset
/// let bytes = try photo?.fileURL.map { try Data(contentsOf: $0) }
/// ```
///
/// A fetched record's assets are files in a temporary folder: copy what you want to keep. A file is
/// removed an hour after the last object of its asset was released, or later.
public final class CKAsset: NSObject, @unchecked Sendable {
  // Unchecked: all mutable state is inside `state`.

  /// The service's description of a stored file.
  package struct StoredFile: Hashable, Codable, Sendable {
    package var fileChecksum: String
    package var size: Int64
    package var receipt: String?
    package var wrappingKey: String?
    package var referenceChecksum: String?
    package var downloadURL: String?

    package init(fileChecksum: String, size: Int64) {
      self.fileChecksum = fileChecksum
      self.size = size
    }
  }

  private struct State {
    var fileURL: URL?
    var storedFile: StoredFile?
  }

  private let state: Mutex<State>
  /// An identifier of this asset in this process, as descriptions print it.
  package let uuid: UUID

  /// The file, or nil if it was not downloaded.
  public var fileURL: URL? { state.withLock { $0.fileURL } }

  /// The service's description of the file, once it is stored there.
  package var storedFile: StoredFile? {
    get { state.withLock { $0.storedFile } }
    set { state.withLock { $0.storedFile = newValue } }
  }

  /// Creates an asset of a file, which a save of the record uploads.
  public convenience init(fileURL: URL) {
    self.init(fileURL: fileURL, storedFile: nil, uuid: ProcessEffects.current.uuid())
  }

  package init(fileURL: URL?, storedFile: StoredFile?, uuid: UUID) {
    state = Mutex(State(fileURL: fileURL, storedFile: storedFile))
    self.uuid = uuid
    super.init()
    TemporaryAssets.begin(fileURL)
  }

  deinit { TemporaryAssets.end(fileURL) }

  /// Sets the path of the downloaded file.
  package func adopt(fileURL: URL) { replaceFile(by: fileURL) }

  /// Removes the path: the downloaded file was removed.
  func forgetFile() { replaceFile(by: nil) }

  private func replaceFile(by fileURL: URL?) {
    TemporaryAssets.begin(fileURL)
    let former = state.withLock { state in
      defer { state.fileURL = fileURL }
      return state.fileURL
    }
    TemporaryAssets.end(former)
  }

  /// The form CloudKit prints.
  public override var description: String {
    RecordFormatter(address: true, wrapped: false).text(of: self)
  }

  /// An asset in an archive: its path, not its bytes.
  struct Archive: Codable {
    var path: String?
    var storedFile: StoredFile?
    var uuid: UUID

    init(_ asset: CKAsset) {
      path = asset.fileURL?.path
      storedFile = asset.storedFile
      uuid = asset.uuid
    }

    var asset: CKAsset {
      CKAsset(
        fileURL: path.map { URL(fileURLWithPath: $0) },
        storedFile: storedFile,
        uuid: uuid
      )
    }
  }
}
