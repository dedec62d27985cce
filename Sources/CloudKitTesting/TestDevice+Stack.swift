import CloudKitMirroring
import Foundation
import OpenCloudKit
import OpenCoreData

/// The app's own container on a device.
extension TestDevice {
  /// Options that mirror a store through the device's connection to the cloud; each call makes new ones.
  ///
  /// An app's code sets them where it otherwise sets options with a container's identifier.
  public var cloudKitContainerOptions: NSPersistentCloudKitContainerOptions {
    NSPersistentCloudKitContainerOptions(container: cloud)
  }

  /// Makes an app's own container the one that runs on the device: ``sync()``, ``save(_:)`` and ``quit()`` are of it.
  ///
  /// ```swift
  /// let phone = try await TestDevice(name: "phone", folder: folder, cloud: cloud)
  /// let library = try Library(at: phone.storeURL, options: phone.cloudKitContainerOptions)
  /// try phone.adopt(library.container)
  /// try library.add("Hello")
  /// try await phone.sync()
  /// ```
  ///
  /// A container whose stores are loaded has to have the device's ``cloudKitContainerOptions``. One whose stores are
  /// not loaded yet may have options with the identifier of the device's CloudKit container, which then use the
  /// device's connection; load the stores afterwards. Stores without options stay local.
  ///
  /// - Throws: A ``StackError`` for a store that is mirrored elsewhere, and while another container runs.
  public func adopt(_ container: NSPersistentCloudKitContainer) throws {
    let connections = container.mirroredConnections
    guard connections.allSatisfy({ $0 === cloud }) else {
      throw StackError(
        "A store of the container is loaded and mirrored elsewhere: make its description with the options of the "
          + "device \(name), cloudKitContainerOptions, or adopt the container before it loads its stores."
      )
    }
    // A container that is refused keeps its options.
    try run(container) { if connections.isEmpty { try connect(container) } }
  }

  /// Gives the descriptions of a container that is not loaded yet the device's connection.
  private func connect(_ container: NSPersistentCloudKitContainer) throws {
    let options = container.persistentStoreDescriptions.compactMap(\.cloudKitContainerOptions)
    guard container.persistentStoreCoordinator.persistentStores.isEmpty, !options.isEmpty else {
      throw StackError(
        "No store of the container is mirrored: give a description the options of the device \(name), "
          + "cloudKitContainerOptions."
      )
    }
    let identifier = cloud.containerIdentifier ?? ""
    for option in options {
      guard option.containerIdentifier == identifier else {
        throw StackError(
          "A description mirrors with \(option.containerIdentifier), and the device \(name) with \(identifier): "
            + "give the device that containerIdentifier."
        )
      }
    }
    for option in options { option.container = cloud }
  }

  /// Why a device does not run an app's container, as a sentence.
  public struct StackError: Error, Hashable, CustomStringConvertible {
    /// The reason, and what to do.
    public let description: String

    init(_ description: String) { self.description = description }
  }
}

extension NSPersistentCloudKitContainer {
  /// Exports all changes, and imports those of other devices, in every mirrored store.
  ///
  /// For the container of an app that runs in a test against a server of its own, as `watershed exec` starts one;
  /// ``TestDevice/sync()`` is the same for a device.
  ///
  /// - Throws: An error of the sync; a ``TestDevice/StackError`` if no store is mirrored, as after a failed load.
  public func sync() async throws {
    guard !storeMirrors.isEmpty else {
      throw TestDevice.StackError(
        "No store of the container \(name) is mirrored, so nothing syncs: see the errors that loadPersistentStores "
          + "reported, and the cloudKitContainerOptions of its descriptions."
      )
    }
    try await waitUntilSynced()
  }
}
