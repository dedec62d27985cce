import Effects
import Foundation

/// Lets a stopped server's data be used with the configured keys and asset store, after the
/// previous ones were lost permanently.
///
/// Values sealed with a lost key stay unreadable, and files of a lost store stay missing.
package struct StorageAdoption: Sendable {
  /// The numbers of the keys that the data no longer uses.
  package private(set) var lostKeys: [String] = []
  /// Whether the data had another asset store.
  package private(set) var hasLostAssets = false

  private let configuration: ServiceConfiguration
  private let assets: any AssetStore
  private let file: URL

  /// Determines what would change, without changing it.
  package init(_ configuration: ServiceConfiguration) async throws {
    guard let folder = configuration.dataFolder, let file = configuration.fieldKeyFile else {
      throw BackupError(description: "Data in memory has no keys or files to lose.")
    }
    self.configuration = configuration
    self.file = file
    assets =
      try configuration.assetStore
      ?? FolderAssetStore(folder: folder.appendingPathComponent(CloudKitService.assetFolderName))
    let known = try open().changeFingerprints { $0 }
    let mine = try KeyRing.read(file)?.fingerprints ?? [:]
    lostKeys = known.fieldKeys.filter { mine[$0.key] != $0.value }.keys.sorted()
    let found = try await assets.identity()
    hasLostAssets = known.assetStore.map { $0 != found } ?? false
  }

  /// Registers the existing keys and asset store; if there is no key, one is created under a number
  /// that no lost key had.
  package func run() async throws {
    let found = try await assets.identity()
    try open().changeFingerprints { known in
      var ring = try KeyRing.read(file)
      if ring == nil {
        let made = KeyRing(
          first: configuration.effects.randomness.bytes(32),
          besides: known.fieldKeys.keys
        )
        try made.write(file)
        ring = made
      }
      known.fieldKeys = ring?.fingerprints ?? [:]
      known.assetStore = found
    }
  }

  private func open() throws -> Opened {
    Opened(try configuration.openStorage())
  }

  /// A storage that is closed after one use.
  private struct Opened {
    private let storage: any Storage

    init(_ storage: any Storage) { self.storage = storage }

    func changeFingerprints<Result>(
      _ body: (inout StorageFingerprints) throws -> Result
    ) throws -> Result {
      defer { storage.close() }
      return try storage.changeFingerprints(body)
    }
  }
}
