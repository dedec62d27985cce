import Effects
import Foundation
import Synchronization

extension NSNotification.Name {
  /// Posted when another user signs in, or the user signs out.
  public static let CKAccountChanged = NSNotification.Name("CKAccountChanged")
}

/// Whether the user's account can be used.
public enum CKAccountStatus: Int, Sendable {
  /// The service could not be reached.
  case couldNotDetermine = 0
  /// A user is signed in.
  case available = 1
  /// The account may not be used here.
  case restricted = 2
  /// No user is signed in.
  case noAccount = 3
  /// The account can't be used until the user acts.
  case temporarilyUnavailable = 4
}

/// An app's container: a public database, and a private and a shared database for each user.
///
/// ```swift
/// CKContainer.configure(
///   CKContainerConfiguration(
///     url: URL(string: "https://cloud.example.org"),
///     containerIdentifiers: ["iCloud.org.example.app"],
///     environment: .production,
///     apiToken: "TOKEN"
///   )
/// )
/// let container = CKContainer.default()
/// try await container.signIn(userName: userName, password: password)
/// let status = try await container.accountStatus()
/// print(status == .available)
/// ```
///
/// Differs from CloudKit: a container is configured with the address of its service; see
/// `CKContainerConfiguration`.
public final class CKContainer: NSObject, @unchecked Sendable {
  // Unchecked: all mutable state is inside `account`.

  /// The container's name, or nil if no configuration names one.
  public let containerIdentifier: String?

  /// How the container finds its client.
  private enum Source: Sendable {
    /// The process's configuration, looked up at the first request.
    case process
    /// A client of its own.
    case client(ServiceClient)
    /// None, since the configuration is wrong.
    case misconfigured(CKError)
  }

  private let source: Source
  private let limits: CallLimits
  /// The account that all calls act for, where the container belongs to one operation.
  private let pin: AccountPin?
  private let account: KnownAccount

  /// The user that the service confirmed, shared by all containers derived from the same one.
  private final class KnownAccount: Sendable {
    let person = Mutex<(token: String, recordID: CKRecord.ID)?>(nil)
  }

  /// The source of time, randomness and tasks for the container's work.
  package let effects: Effects

  // MARK: Making containers

  /// The container that the configuration names first.
  public class func `default`() -> CKContainer {
    CKContainer(identifier: ContainerRegistry.shared.defaultIdentifier(), source: .process)
  }

  /// Creates a container of a name.
  public convenience init(identifier containerIdentifier: String) {
    self.init(identifier: containerIdentifier, source: .process)
  }

  /// Creates a container with its own configuration and transport, so that one process can simulate
  /// several devices or users.
  ///
  /// Every request fails with the error of an invalid configuration.
  package convenience init(
    identifier: String,
    configuration: CKContainerConfiguration,
    transport: (any CloudKitTransport)? = nil,
    effects: Effects = .live,
    clientIdentifier: String? = nil,
    retries: RetryPolicy = .interactive
  ) {
    let source: Source
    do throws(CKError) {
      let resolved = try ResolvedConfiguration(checking: configuration, for: identifier)
      source = .client(
        ServiceClient(
          configuration: resolved,
          transport: transport ?? HTTPTransport(baseURL: resolved.url),
          effects: effects,
          clientIdentifier: clientIdentifier ?? effects.uuid().uuidString,
          retries: retries
        )
      )
    } catch {
      source = .misconfigured(error)
    }
    self.init(identifier: identifier, source: source, effects: effects)
  }

  private init(identifier: String?, source: Source, effects: Effects = .live) {
    containerIdentifier = identifier
    self.source = source
    self.effects = effects
    limits = .standard
    pin = nil
    account = KnownAccount()
    super.init()
  }

  private init(_ container: CKContainer, limits: CallLimits, pin: AccountPin?) {
    containerIdentifier = container.containerIdentifier
    source = container.source
    effects = container.effects
    self.limits = limits
    self.pin = pin
    account = container.account
    super.init()
  }

  /// This container, whose calls take no longer than the limits say.
  func limited(to limits: CallLimits) -> CKContainer {
    let tightened = self.limits.tightened(to: limits)
    return tightened == self.limits ? self : CKContainer(self, limits: tightened, pin: pin)
  }

  /// This container with all its calls for one account: they fail where another one is signed in.
  package func pinned(to pin: AccountPin) -> CKContainer {
    CKContainer(self, limits: limits, pin: pin)
  }

  /// This container with all its calls for the currently signed-in account, for an operation of
  /// several requests.
  package func pinnedToAccount() -> CKContainer {
    // A container without a client fails at the first request, with the reason.
    guard pin == nil, let client = try? client() else { return self }
    return pinned(to: client.account)
  }

  /// Requests the signed-in user from the service.
  package func confirmedAccount() async throws -> AccountPin {
    let container = pinnedToAccount()
    let recordID = try await container.userRecordID()
    return AccountPin(
      signIn: try container.client().account.signIn,
      userRecordName: recordID.recordName
    )
  }

  /// Whether a pin's account is the one that is signed in.
  package func isCurrent(_ pin: AccountPin) -> Bool {
    (try? client())?.isCurrent(pin) ?? false
  }

  /// Whether there are credentials to send; the service may refuse them.
  package var hasToken: Bool {
    guard let client = try? client() else { return false }
    return client.webAuthToken != nil || client.configuration.serverKey != nil
  }

  /// Whether the app itself signed the user out, and no user has signed in since.
  package var isSignedOut: Bool { (try? client())?.isSignedOut ?? false }

  /// Whether both containers share their credentials: a sign-in to one is a sign-in to the other.
  func hasAccount(of other: CKContainer) -> Bool {
    if account === other.account { return true }
    guard let own = try? client(), let others = try? other.client() else { return false }
    return own.sharesCredentials(with: others)
  }

  /// Sets the configuration of a container, or of all containers without their own.
  ///
  /// Call it before the first request. `CKAccountChanged` is posted if the configuration signs
  /// another user in.
  public class func configure(
    _ configuration: CKContainerConfiguration,
    for identifier: String? = nil
  ) {
    guard ContainerRegistry.shared.configure(configuration, for: identifier) else { return }
    AccountNotices.shared.accountChanged(of: nil)
  }

  /// The container's client; an error says how to configure one.
  package func client() throws(CKError) -> ServiceClient {
    switch source {
    case .process:
      return try ContainerRegistry.shared.client(for: containerIdentifier).limited(to: limits)
        .pinned(to: pin)
    case .client(let client): return client.limited(to: limits).pinned(to: pin)
    case .misconfigured(let error): throw error
    }
  }

  // MARK: Databases

  /// The database of the user's own records.
  public var privateCloudDatabase: CKDatabase { database(with: .private) }
  /// The database that all users can read.
  public var publicCloudDatabase: CKDatabase { database(with: .public) }
  /// The database of the records that other users share with this one.
  public var sharedCloudDatabase: CKDatabase { database(with: .shared) }

  /// The database of a scope.
  public func database(with databaseScope: CKDatabase.Scope) -> CKDatabase {
    CKDatabase(container: self, scope: databaseScope)
  }

  // MARK: Accounts

  /// Whether the user's account can be used.
  ///
  /// If the service can't be reached, a user that it confirmed earlier is still signed in. Without a
  /// token there is no account. If the service refuses the token, as after the session has expired, the account
  /// is temporarily unavailable: keep cached data, and ask the user to sign in again.
  public func accountStatus() async throws -> CKAccountStatus {
    guard let token = Self.token(of: try client()) else { return .noAccount }
    do {
      _ = try await userRecordID()
      return .available
    } catch CKError.notAuthenticated {
      return hasToken ? .temporarilyUnavailable : .noAccount
    } catch let error as CKError where error.isTransient {
      let isKnown = account.person.withLock { $0?.token == token }
      return isKnown ? .available : .couldNotDetermine
    }
  }

  /// The identifier of the signed-in user's record.
  public func userRecordID() async throws -> CKRecord.ID {
    let client = try client()
    guard let token = Self.token(of: client) else {
      throw CKError(
        .notAuthenticated,
        "No user is signed in.",
        remedy: "Sign in on the service's page and configure the web auth token it hands over."
      )
    }
    let recordID = try await client.callerRecordID()
    account.person.withLock { $0 = (client.webAuthToken ?? token, recordID) }
    return recordID
  }

  /// The token of a client's user; a server that signs with its own key is a user without one.
  ///
  /// Another process that shares the token file may have signed the user in.
  private static func token(of client: ServiceClient) -> String? {
    if client.webAuthToken == nil, client.configuration.serverKey == nil {
      client.readTokensAgain()
    }
    return client.webAuthToken ?? client.configuration.serverKey?.keyID
  }

  /// Signs a user in with the token that the sign-in page returned, or out.
  ///
  /// Posts `CKAccountChanged`.
  public func setWebAuthToken(_ token: String?) throws {
    let client = try client()
    guard client.webAuthToken != token else { return }
    adopt(SignInTokens(webAuthToken: token), client)
  }

  /// Discards the user that the service confirmed.
  func forgetPerson() { account.person.withLock { $0 = nil } }

  /// Reports whether the user's account can be used.
  public func accountStatus(
    completionHandler: @escaping @Sendable (CKAccountStatus, (any Error)?) -> Void
  ) {
    effects.tasks.spawn {
      do {
        completionHandler(try await self.accountStatus(), nil)
      } catch {
        completionHandler(.couldNotDetermine, error)
      }
    }
  }

  /// Fetches the identifier of the signed-in user's record.
  public func fetchUserRecordID(
    completionHandler: @escaping @Sendable (CKRecord.ID?, (any Error)?) -> Void
  ) {
    effects.tasks.spawn {
      do {
        completionHandler(try await self.userRecordID(), nil)
      } catch {
        completionHandler(nil, error)
      }
    }
  }

  /// The form CloudKit prints.
  public override var description: String {
    "<CKContainer: \(RecordFormatter.address(of: self)); "
      + "containerID=\(containerIdentifier ?? "(null)")>"
  }
}
