import CloudKitMirroring
import Effects
import Foundation
import OpenCloudKit
import OpenCoreData
import Synchronization

/// A user's device for tests: a store in a folder, mirrored through a test cloud.
///
/// ```swift
/// try await phone.quit()  // the app ends; its store stays
/// try phone.launch()
/// try await phone.sync()
/// ```
///
/// ``launch()`` makes a plain container of a model. A device can run the app's own container instead, with its
/// subclass, descriptions and contexts; see ``adopt(_:)``.
public final class TestDevice: Sendable {
  /// The device's name.
  public let name: String
  /// The faults between the device and the cloud.
  public let faults: FaultPlan
  /// The model of ``launch()``; nil if the app makes its containers itself.
  private let model: NSManagedObjectModel?
  private let folder: URL
  /// The connection of the device.
  let cloud: CKContainer
  private let effects: Effects
  private let running = Mutex<NSPersistentCloudKitContainer?>(nil)
  /// Imports that conflict with a save come from other devices' edits, which a test makes a few of.
  private static let attemptsPerSave = 10

  /// Creates a device; ``launch()`` opens its store.
  public convenience init(
    name: String,
    model: NSManagedObjectModel,
    folder: URL,
    cloud: TestCloud,
    person: String = "ada",
    containerIdentifier: String = TestCloud.defaultContainer,
    environment: CKContainerConfiguration.Environment = .development
  ) async throws {
    try await self.init(
      name,
      model,
      folder,
      cloud,
      person,
      containerIdentifier,
      environment
    )
  }

  /// Creates a device for an app that makes its containers itself; ``adopt(_:)`` takes them.
  public convenience init(
    name: String,
    folder: URL,
    cloud: TestCloud,
    person: String = "ada",
    containerIdentifier: String = TestCloud.defaultContainer,
    environment: CKContainerConfiguration.Environment = .development
  ) async throws {
    try await self.init(
      name,
      nil,
      folder,
      cloud,
      person,
      containerIdentifier,
      environment
    )
  }

  private init(
    _ name: String,
    _ model: NSManagedObjectModel?,
    _ folder: URL,
    _ cloud: TestCloud,
    _ person: String,
    _ containerIdentifier: String,
    _ environment: CKContainerConfiguration.Environment
  ) async throws {
    self.name = name
    self.model = model
    self.folder = folder
    faults = FaultPlan()
    effects = cloud.effects
    self.cloud = try await cloud.container(
      for: person,
      identifier: containerIdentifier,
      device: name,
      environment: environment,
      faults: faults
    )
  }

  /// The URL of the device's store.
  public var storeURL: URL { folder.appendingPathComponent("\(name).sqlite") }

  /// Opens the store and starts to mirror it, as an app's launch does.
  ///
  /// - Throws: An error of the store; a ``StackError`` for a device without a model, and while a container runs.
  @discardableResult
  public func launch() throws -> NSPersistentCloudKitContainer {
    guard let model else {
      throw StackError(
        "The device \(name) was made without a model: make the app's container, and adopt(_:) it."
      )
    }
    // Two containers that mirror one file would be two devices of the same name.
    guard running.withLock({ $0 == nil }) else { throw anotherRuns }
    let container = NSPersistentCloudKitContainer(name: name, managedObjectModel: model)
    container.effects = effects
    let description = NSPersistentStoreDescription(url: storeURL)
    description.cloudKitContainerOptions = cloudKitContainerOptions
    container.persistentStoreDescriptions = [description]
    var failure: (any Error)?
    container.loadPersistentStores { _, error in failure = failure ?? error }
    if let failure { throw failure }
    try run(container) {}
    return container
  }

  /// Makes a container the one of the running app, after a body that prepares it.
  func run(_ container: NSPersistentCloudKitContainer, preparing: () throws -> Void) throws {
    try running.withLock { running in
      guard running == nil || running === container else { throw anotherRuns }
      try preparing()
      running = container
    }
  }

  private var anotherRuns: StackError {
    StackError("Another container runs on the device \(name): quit() ends it.")
  }

  /// Ends the app: nothing of it runs afterwards, and uncommitted changes are lost.
  public func quit() async throws {
    let container = running.withLock { running in
      defer { running = nil }
      return running
    }
    try await container?.closeStores()
  }

  /// The container of the running app.
  public var container: NSPersistentCloudKitContainer {
    guard let container = running.withLock({ $0 }) else {
      preconditionFailure("The device \(name) is not launched.")
    }
    return container
  }

  /// Runs a body with a new context and saves it.
  ///
  /// An import may change the same objects between a fetch of the body and the save: a merge conflict, which the
  /// context's policy refuses. The body then runs again with another new context, ten times at most, so it must not
  /// count on running once. Other errors, and the tenth conflict, are thrown.
  @discardableResult
  public func save<Result>(_ body: (NSManagedObjectContext) throws -> Result) throws -> Result {
    for _ in 1..<Self.attemptsPerSave {
      do {
        return try saveOnce(body)
      } catch CocoaError.managedObjectMerge {
        continue
      }
    }
    return try saveOnce(body)
  }

  private func saveOnce<Result>(
    _ body: (NSManagedObjectContext) throws -> Result
  ) throws -> Result {
    let context = container.newBackgroundContext()
    return try context.performAndWait {
      let result = try body(context)
      if context.hasChanges { try context.save() }
      return result
    }
  }

  /// Exports all changes, and imports those of other devices.
  ///
  /// - Throws: An error of the sync; a ``StackError`` if no store is mirrored, as after a failed load.
  public func sync() async throws { try await container.sync() }

  /// Every object by its record name: fields and links as in its record, as texts.
  package func snapshot() throws -> [String: [String: String]] {
    var result: [String: [String: String]] = [:]
    for mirror in container.storeMirrors {
      try result.merge(mirror.snapshot()) { first, _ in first }
    }
    return result
  }
}
