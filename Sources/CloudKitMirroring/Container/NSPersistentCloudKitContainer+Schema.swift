import Effects
import Foundation
import OpenCoreData

/// How a container's CloudKit schema is initialized.
public struct NSPersistentCloudKitContainerSchemaInitializationOptions: OptionSet, Sendable {
  /// The options as bits.
  public let rawValue: UInt

  /// Creates options from bits.
  public init(rawValue: UInt) {
    self.rawValue = rawValue
  }

  /// Validates the model and creates the records, but sends nothing.
  public static let dryRun = Self(rawValue: 2)
  /// Prints the records.
  public static let printSchema = Self(rawValue: 4)
}

extension NSPersistentCloudKitContainer {
  /// Creates the record types and fields of all mirrored stores in the development environment.
  ///
  /// One record of each type, with every field, is saved and deleted again. The call returns when
  /// this is done; use it in development and in tests, never in a shipped app.
  public func initializeCloudKitSchema(
    options: NSPersistentCloudKitContainerSchemaInitializationOptions = []
  ) throws {
    let mirrors = storeMirrors
    guard !mirrors.isEmpty else {
      throw MirroringErrorCode.neverInitialized.error(
        "No store of the container is mirrored. Load the stores, and give one of them "
          + "cloudKitContainerOptions."
      )
    }
    for mirror in mirrors {
      let records = try mirror.schemaRecords()
      if options.contains(.printSchema) {
        for record in records { mirror.printSchemaRecord(record) }
      }
      if options.contains(.dryRun) { continue }
      try CallingThread.wait { try await mirror.initializeSchema(records) }
    }
  }
}
