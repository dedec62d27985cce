import CloudKitServer
import CloudKitWebServices
import Effects
import Foundation
import OpenCloudKit

/// A CloudKit service inside the process, for tests: without sockets, and with accounts of its own.
///
/// ```swift
/// let cloud = try await TestCloud()
/// let phone = try await TestDevice(name: "phone", model: model, folder: folder, cloud: cloud)
/// let laptop = try await TestDevice(name: "laptop", model: model, folder: folder, cloud: cloud)
/// try phone.launch()
/// try laptop.launch()
///
/// try phone.save { context in
///   let post = Post(context: context)
///   post.title = "Hello"
/// }
/// try await phone.sync()
/// try await laptop.sync()
/// let titles = try laptop.save { context in
///   try context.fetch(NSFetchRequest<Post>(entityName: "Post")).map(\.title)
/// }
/// #expect(titles == ["Hello"])
/// ```
public final class TestCloud: Sendable {
  /// The default container of devices.
  public static let defaultContainer = "iCloud.watershed.test"

  package let service: CloudKitService
  package let effects: Effects
  private let apiToken: String

  /// Starts a service in memory, or in a folder that can be opened again.
  public convenience init(dataFolder: URL? = nil, effects: Effects = .live) async throws {
    try await self.init(dataFolder: dataFolder, effects: effects, limits: { _ in })
  }

  /// Starts a service with other limits than the defaults.
  package init(
    dataFolder: URL? = nil,
    effects: Effects = .live,
    limits change: (inout ServiceLimits) -> Void
  ) async throws {
    var limits = ServiceLimits()
    // Tests need no resistance against attacks.
    limits.passwordRounds = 1
    limits.passwordRule = .any
    change(&limits)
    service = try CloudKitService(
      ServiceConfiguration(
        dataFolder: dataFolder,
        baseURL: "http://cloud.test",
        limits: limits,
        effects: effects
      )
    )
    self.effects = effects
    apiToken = try await service.bootstrapAPIToken()
  }

  /// Stops the service; requests of devices then fail.
  public func shutdown() async { await service.shutdown() }

  /// A device's connection to a CloudKit container of this service, with a user signed in.
  ///
  /// An account is created for a user on first use. The device's name identifies the changes that
  /// the device made itself.
  public func container(
    for person: String = "ada",
    identifier: String = TestCloud.defaultContainer,
    device: String,
    environment: CKContainerConfiguration.Environment = .development,
    faults: FaultPlan = FaultPlan()
  ) async throws -> CKContainer {
    try await container(
      for: person,
      identifier: identifier,
      device: device,
      environment: environment,
      faults: faults,
      retries: .never
    )
  }

  /// A connection whose requests are repeated after transient failures, as a policy says.
  package func container(
    for person: String = "ada",
    identifier: String = TestCloud.defaultContainer,
    device: String,
    environment: CKContainerConfiguration.Environment = .development,
    faults: FaultPlan,
    retries: RetryPolicy
  ) async throws -> CKContainer {
    try await makeAccount(of: person)
    let token = try await service.signIn(userName: person, container: identifier)
    let service = service
    let apiToken =
      environment == .production
      ? try await service.createAPIToken(environment: .production) : apiToken
    return CKContainer(
      identifier: identifier,
      configuration: CKContainerConfiguration(
        url: URL(string: "http://cloud.test"),
        containerIdentifiers: [identifier],
        environment: environment,
        apiToken: apiToken,
        webAuthToken: token
      ),
      transport: FaultyTransport(
        InProcessTransport { await service.respond(to: $0) },
        faults: faults,
        effects: effects
      ),
      effects: effects,
      clientIdentifier: device,
      retries: retries
    )
  }

  /// Creates a person's account at the first call; another call may do so at the same time.
  private func makeAccount(of person: String) async throws {
    // A folder that is opened again already has its users.
    guard try !service.accounts.has(named: person) else { return }
    do {
      try await service.createAccount(userName: person, password: "secret")
    } catch {
      guard try service.accounts.has(named: person) else { throw error }
    }
  }

  // MARK: The schema

  /// Replaces the development schema of a container by the text of a schema file (`.ckdb`), as
  /// `watershed schema import` does.
  ///
  /// Nothing is replaced if the text has an error, or contradicts the production schema.
  public func importSchema(
    _ text: String,
    container identifier: String = TestCloud.defaultContainer
  ) async throws {
    try await service.schemas.importSchema(text, container: identifier)
  }

  /// Adds to the production schema of a container what its development schema has, as `watershed schema promote`
  /// does.
  ///
  /// Production takes no record of a type or with a field that its schema lacks: a device in production shows
  /// whether the promoted schema has all that an app's model sends.
  public func promoteSchema(
    container identifier: String = TestCloud.defaultContainer
  ) async throws {
    _ = try await service.schemas.promoteSchema(container: identifier)
  }
}
